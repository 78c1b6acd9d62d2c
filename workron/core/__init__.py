"""The rules of Workron, without input, output or clocks.

States and transitions, the models of manifests, planning a workflow, retries, leases, ids and
errors. Time and randomness come in as arguments. Every other package uses this one.
"""
