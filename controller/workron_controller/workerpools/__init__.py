"""WorkerPools: how many worker pods run, from which template, and why one is missing.

`controller` lists all pools and starts a `reconciler` for each. The decisions are pure functions of
what was observed: `autoscaler`, `rollout`, `manifests`, `status`.
"""
