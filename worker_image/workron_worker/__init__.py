"""The agent that claims jobs and the runner that starts their commands.

Belongs here: claiming, beating, reporting, draining, and starting, watching and ending commands.
Does not belong here: deciding which job may run (`workron.scheduling`), SQL (`workron.store`),
anything that knows Kopf or the Kubernetes client.
Called by: `workron.cli`, and the worker image's entry point.
"""
