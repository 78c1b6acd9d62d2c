"""Renders the page about the command line from the program's own help and table of exit codes.

Called by `generate`.
"""

from __future__ import annotations

from typing import Final

from workron.cli import app, exit_codes

_WIDTH: Final = 80
_PAGE: Final = """\
# Command line

<!-- Made by `make generate` from workron/cli/; edit that. -->

{commands}

## Exit codes

{codes}

## Profiles

A profile names a store and a namespace, so that commands need neither `--store` nor `--namespace`.
Profiles are in `~/.config/workron/config.toml`, or in `$XDG_CONFIG_HOME/workron/config.toml` if
that variable is set:

```toml
profile = "laptop"    # used if neither --profile nor WORKRON_PROFILE names one

[profiles.laptop]
store = "sqlite:////var/lib/jobs.db"

[profiles.team]
store = "postgresql://me@db.example.com/jobs"
namespace = "team"
```

The first of these that has a value wins, for the store and for the namespace:

1. the flag `--store` or `--namespace`
2. the variable `WORKRON_STORE`
3. the profile of `--profile`, else of `WORKRON_PROFILE`, else the `profile` of the file
4. the default of the command

`--namespace` must match the namespace of a manifest that sets one. The namespace of a profile
applies only to manifests that set none. `workron worker` takes only the store from a profile.

## Variables that Workron itself reads

| variable | meaning |
|---|---|
| `WORKRON_STORE` | the store of every command that is given no `--store` |
| `WORKRON_PROFILE` | the profile of every command that is given no `--profile` |
| `WORKRON_TOKEN` | the token that admits a `workron worker` to its pool |
| `WORKRON_RUNNER` | the default of `workron worker --runner` |
| `WORKRON_POD_UID` | in a pod, its uid: the name of its one `workron worker` |
| `WORKRON_WATCH_NAMESPACE` | `--watch-namespace` of `workron controller` |
| `WORKRON_STATUS_WRITES_PER_SECOND` | `--status-writes-per-second` of `workron controller` |
| `WORKRON_WORKER_IMAGE` | `--worker-image` of `workron controller` |
| `WORKRON_DEFAULT_WORKER_POOL` | `--default-worker-pool` of `workron controller` |
| `WORKRON_WORKER_POOLS` | `--worker-pools` of `workron controller` |
| `WORKRON_MAX_WORKER_CONNECTIONS` | `--max-worker-connections` of `workron controller` |
| `WORKRON_SHARED_ROLE` | `--shared-role` of `workron controller` |
| `WORKRON_POD_NAME` | the name of the pod, the holder of the Lease of a `workron controller` |
| `WORKRON_POD_NAMESPACE` | in a pod, its namespace: where the Lease of a `workron controller` is |
| `TRACEPARENT` | the trace of submitted jobs, unless their manifest has one |
| `WORKRON_DEBUG` | if set, errors come with their traceback, and all that is logged is printed |
"""


def page() -> str:
    """Render it, one section a command."""
    group = app.app()
    context = group.context_class(
        group, info_name="workron", terminal_width=_WIDTH, **group.context_settings
    )
    sections = []
    for name in app.COMMANDS:
        command = group.commands[name]
        inner = command.context_class(
            command, parent=context, info_name=name, terminal_width=_WIDTH
        )
        # Blanks at the ends of lines are how the help is wrapped, and nothing to read.
        lines = [line.rstrip() for line in command.get_help(inner).splitlines()]
        sections.append("\n".join([f"## workron {name}", "", "```text", *lines, "```"]))
    return _PAGE.format(commands="\n\n".join(sections), codes=_codes())


def _codes() -> str:
    rows = [f"| {code} | {meaning} |" for code, meaning in exit_codes.MEANINGS.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])
