"""The kinds Job, Workflow and WorkerPool as strict, frozen pydantic models.

Fields, formats, bounds, defaults and descriptions; the custom resource definitions and the manifest
reference are generated from them. What needs the whole graph is checked in `workron.core.graph`.
"""
