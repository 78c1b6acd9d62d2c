"""The operator: carries objects of a cluster into the store, and tells in them how jobs stand.

Belongs here: everything that knows Kopf and Kubernetes. It decides nothing about jobs: what an
object asks for is handed to the store's doors. Every part can be ended at any moment and begun
again, and two replicas at once do no harm.
Does not belong here: the rules (`workron.core`), the use cases (`workron.scheduling`), and the
worker, which knows nothing of this room, as this room knows nothing of it.
Called by: `workron controller`, and `make generate` for the custom resource definitions.
"""
