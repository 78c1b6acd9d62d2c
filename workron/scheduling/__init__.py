"""The use cases, one verb a file: opening this folder lists what the system can do.

Belongs here: what happens from a request to an acknowledged end, by the rules of `workron.core`
over the protocol of `workron.store`.
Does not belong here: SQL, running commands, terminals, HTTP, Kubernetes.
Called by: `workron.cli`; never by `workron_worker`.
"""
