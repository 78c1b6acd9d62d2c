"""`python -m workron_runner`: the command line of the runner's process.

The agent either creates a socket pair and passes one end (`--descriptor`), or connects to a path
(`--socket`) at which the runner accepts one connection and then removes the path.
"""

from __future__ import annotations

import argparse
import pathlib
import socket
import sys

from workron_runner import boot_cleanup, sandbox, spawn
from workron_runner.connection import FrameConnection, RunnerListener
from workron_runner.runner import Runner
from workron_runner.sandbox import TerminationSignals
from workron_runner.uids import UidPool, UidRange


def main() -> None:
    """Serve one agent until it disconnects."""
    termination = TerminationSignals()
    parser = _parser()
    options = _parse(parser)
    sandbox.prepare_process()
    if options.uids:
        sandbox.drop_privileges(options.processes)
    uids = UidPool(options.uids) if options.uids else None
    if options.socket is None:
        stream = socket.socket(fileno=options.descriptor)
        # It came by inheritance; commands must not inherit it in turn.
        stream.set_inheritable(False)
    elif (accepted := _accept_agent(parser, options.socket, uids, termination)) is None:
        return
    else:
        stream = accepted
    runner = Runner(
        FrameConnection(stream),
        termination,
        is_isolating=_is_isolating(options),
        inherits_environment=options.hand_down,
        uids=uids,
    )
    reason = runner.run()
    if options.socket:
        _log(f"all commands have ended: {reason}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("workron_runner", description="Runs commands for one agent.")
    address = parser.add_mutually_exclusive_group(required=True)
    address.add_argument("--descriptor", type=int, help="a connected stream socket, inherited")
    # Absolute: `prepare_process` changes the working directory.
    address.add_argument(
        "--socket", type=lambda text: pathlib.Path(text).absolute(), metavar="PATH",
        help="where to listen for the agent",
    )  # fmt: skip
    parser.add_argument(
        "--isolate", action="store_true", help="isolate commands from each other with Landlock"
    )
    parser.add_argument(
        "--try-isolate", action="store_true",
        help="like --isolate, but only log a warning if the kernel lacks Landlock",
    )  # fmt: skip
    parser.add_argument(
        "--uids", type=_uid_range, metavar="FIRST-LAST",
        help="run each command as its own uid; the runner uses the first one to kill the others",
    )  # fmt: skip
    parser.add_argument(
        "--processes", type=int, metavar="N", help="at most N processes and threads per command"
    )
    parser.add_argument(
        "--hand-down", action="store_true", help="pass the runner's environment to commands"
    )
    return parser


def _parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    options = parser.parse_args()
    if not spawn.is_supported():
        parser.error("this C library is too old: glibc 2.29 or musl 1.1.24 is needed")
    if options.isolate and not sandbox.has_landlock():
        parser.error("--isolate needs a kernel with Landlock and its scopes: Linux 6.12 or newer")
    _check_privileges(parser, options)
    return options


def _is_isolating(options: argparse.Namespace) -> bool:
    if options.try_isolate and not sandbox.has_landlock():
        _log(
            "commands are not isolated from each other: this kernel has no Landlock scopes"
            " (Linux 6.12 or newer has them)"
        )
        return False
    return bool(options.isolate or options.try_isolate)


def _uid_range(text: str) -> UidRange:
    try:
        return UidRange.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a range of two or more uids without root, such as 100000-100099"
        ) from None


def _check_privileges(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    option = "--uids"
    try:
        if options.uids:
            sandbox.check_uid_privileges(options.uids)
        option = "--processes"
        if options.processes is not None:
            if options.processes < 1 or not options.uids:
                parser.error(
                    f"{option} needs a number above 0, and --uids: processes count per uid"
                )
            sandbox.check_process_limit()
    except sandbox.SandboxError as error:
        parser.error(f"{option} {error}")


def _accept_agent(
    parser: argparse.ArgumentParser,
    path: pathlib.Path,
    uids: UidPool | None,
    termination: TerminationSignals,
) -> socket.socket | None:
    # Before the path exists: an agent that connects relies on it that nothing else runs here.
    try:
        boot_cleanup.clean_up_lost_runners()
    except FileNotFoundError as error:
        parser.error(f"commands need a writable folder: {error.strerror}")
    if uids is not None:
        uids.kill_all()
    try:
        listener = RunnerListener(path, termination)
    except OSError as error:
        parser.error(f"--socket: cannot create {path}: {error.strerror or error}")
    _log(f"waiting for an agent at {path}")
    stream = listener.accept()
    _log("agent connected" if stream else "asked to end before an agent connected")
    return stream


def _log(line: str) -> None:
    # Standard error: a runner that a container starts has no agent that would log for it yet.
    sys.stderr.write(f"workron_runner: {line}\n")


if __name__ == "__main__":
    main()
