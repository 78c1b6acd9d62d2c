"""The operator: objects of a cluster go into the store, and what becomes of them comes back.

Belongs here: everything that knows Kopf, Kubernetes or the API server.
Does not belong here: rules of jobs (`workron.core`), use cases (`workron.scheduling`), SQL.
Called by: `workron.cli`.
"""
