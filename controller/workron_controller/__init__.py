"""The controller: submits Jobs and Workflows of a cluster to the store, and runs WorkerPools.

Everything that uses Kopf or Kubernetes is in this package: `kube` (API client), `jobs` (Jobs and
Workflows), `workerpools` (pods of workers) and `crds` (the custom resource definitions).
"""
