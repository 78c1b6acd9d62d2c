"""The controller: what ties the custom resources of a cluster to the store.

Belongs here: everything that knows Kubernetes, and later Kopf.
Does not belong here: the rules (`workron.core`), the use cases (`workron.scheduling`), and the
worker, which knows nothing of this room, as this room knows nothing of it.
Called by: `make generate`, for the custom resource definitions.
"""
