"""What a person may write, as strict, frozen models: Job, Workflow, WorkerPool.

Belongs here: the fields of the three kinds, their forms, bounds, defaults and descriptions. The
custom resource definitions are made from these models.
Does not belong here: reading text (that is `core.manifest`), and whatever needs the whole graph:
unknown upstreams, cycles, tasks of one name, arrays of unequal length (`core.graph`).
Called by: `core.manifest`, `core.expand`, and every room that shows an object in its own shape.
"""
