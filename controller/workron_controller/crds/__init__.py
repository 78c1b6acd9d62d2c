"""The custom resource definitions, made from the models of `workron.core.model`.

Belongs here: names, columns and subresources of the three kinds, the rules that the API server
checks, and the way from a model to a schema that it takes.
Does not belong here: fields, bounds and defaults (they are the models'), Kopf, and any client of
Kubernetes.
Called by: `make generate`, as `python -m workron_controller.crds`.
"""
