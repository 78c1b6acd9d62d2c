"""The custom resource definitions, generated from the models in `workron.core.model`.

`kinds` has names, columns and subresources, `rules` the CEL rules, `schema` the conversion. `make
generate` runs it as `python -m workron_controller.crds`.
"""
