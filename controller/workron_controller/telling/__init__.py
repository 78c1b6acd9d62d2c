"""From the store to the objects of the cluster: how a job stands, as its object's status.

Belongs here: what a status says, when it is written, and that an object leaves after its time.
Does not belong here: requests (`api`), and what the objects ask for (`intake`).
Called by: `workron_controller.operator`.
"""
