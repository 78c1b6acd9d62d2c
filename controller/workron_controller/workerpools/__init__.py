"""WorkerPools: how many workers there are, in pods of which shape, and what keeps them from coming.

Belongs here: what a pool's pods look like, when there are more or fewer of them, what proves one
dead, what is told of a pool. What decides is pure and is handed what was seen; `keeper` looks and
acts, on the one replica that leads.
Does not belong here: jobs; how a request is sent (`api`); what a worker does in its pod.
Called by: the operator.
"""
