"""The operator: carries objects of a cluster into the store, and tells in them how jobs stand.

The only room that knows Kopf and Kubernetes. It decides nothing about jobs: what an object asks for
is handed to the store's doors, and what stands there is told. Every part can be ended at any moment
and begun again; two replicas at once do no harm.
"""
