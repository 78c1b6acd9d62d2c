"""From objects of the cluster to the store: what was seen, what it asks for, and asking for it.

Belongs here: watching and listing objects, reading them, carrying them into the store, and finding
those that are gone.
Does not belong here: what becomes of a job (the store's), and telling of it (`telling`).
Called by: `workron_controller.manager`.
"""
