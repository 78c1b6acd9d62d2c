"""The rules, pure.

Belongs here: the models of manifests, the table of states, the graph, retry, lease, ids, errors,
and the ports through which time and chance come in.
Does not belong here: input, output, asyncio, logging, clocks, databases.
Called by: every other room; calls none.
"""
