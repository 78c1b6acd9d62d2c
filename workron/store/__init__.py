"""Where jobs are kept: one set of promises, two dialects, and the door that picks between them.

Belongs here: the protocol that every store keeps, its PostgreSQL and SQLite forms, and the choice
of one by its URL.
Does not belong here: deciding what should happen next (`workron.scheduling`, by the rules of
`workron.core`), and anything that talks to a user.
Called by: `workron.scheduling` and `workron.cli`; by `workron_worker`, through the worker's door
of the protocol only.
"""
