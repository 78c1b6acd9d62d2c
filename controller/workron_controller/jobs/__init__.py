"""Jobs and Workflows: from objects of the cluster to runs in the store, and back to statuses.

`informer` and `resync` fill `cache` and `workqueue`, `submitter` empties the queue into the store,
`status_sync` and `status_writer` write statuses, and `ttl` deletes finished objects.
"""
