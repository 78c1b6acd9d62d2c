"""The runner: a process that starts commands, watches them, and ends them whole.

Belongs here: spawning, output, limits of time, folders of attempts, what is left of a command, and
the frames in which all this is asked for and told (docs/reference/runner-protocol.md).
Does not belong here: stores, retries, leases beyond one deadline, anything outside the standard
library. It may be copied alone into another image.
Called by: `workron_worker.runner_executor`, over a Unix socket; `workron_worker` also borrows its
folders and its bounded output.
"""
