"""The API server as the operator uses it: plain requests, plain JSON, errors that say what to do.

Belongs here: how to reach the server and as whom, one module a concern; what its refusals mean.
Does not belong here: what the operator wants of it, elections, watching (Kopf does that).
Called by: every other part of `workron_controller`.
"""
