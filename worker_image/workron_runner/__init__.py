"""The runner: a process that starts commands, watches them, and ends them whole.

Belongs here: spawning, output, limits of time, folders of attempts, what is left of a command, and
the frames in which all this is asked for and told (docs/reference/runner-protocol.md).
Does not belong here: stores, retries, leases beyond one deadline, anything outside the standard
library. It may be copied alone into another image.
Called by: `workron_worker.runner_client`, over a Unix socket; `workron_worker` also borrows its
folders, its bounded output, and what ends that which a killed worker left.
"""

import sys

_OLDEST = (3, 11)

# Here, where every Python gets to: an older one could not even read some of the other modules.
if sys.version_info < _OLDEST:
    raise SystemExit(
        f"workron_runner needs Python {_OLDEST[0]}.{_OLDEST[1]} or newer, and {sys.executable} is"
        f" {sys.version_info[0]}.{sys.version_info[1]}"
    )
