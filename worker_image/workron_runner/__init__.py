"""The runner: a process that starts commands for one agent, supervises them and ends them whole.

It speaks the protocol in docs/reference/runner-protocol.md over a Unix socket and knows nothing of
stores, retries or leases. It imports the standard library only, so that it can be copied into any
image that has Python.
"""

import sys

_OLDEST = (3, 11)

# Checked here, before any other import: older versions cannot parse some of the other modules.
if sys.version_info < _OLDEST:
    raise SystemExit(
        f"workron_runner needs Python {_OLDEST[0]}.{_OLDEST[1]} or newer, and {sys.executable} is"
        f" {sys.version_info[0]}.{sys.version_info[1]}"
    )
