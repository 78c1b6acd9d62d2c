"""The entry of the runner's process: `python -m workron_runner`, with the connection to its agent.

Either the agent made a pair of sockets and hands one over (`--descriptor`), or it comes to a path
(`--socket`), where one connection is taken and the path is then removed.
"""

from __future__ import annotations

import argparse
import pathlib
import socket
import sys

from workron_runner import process_reaper, sandbox, spawn
from workron_runner.connection import SocketLink, SocketListener
from workron_runner.runner import Runner
from workron_runner.uids import Range, Uids


def main() -> None:
    """Run for one agent, until it is gone."""
    told = sandbox.told_to_end()
    parser = _parser()
    options = _read(parser)
    sandbox.prepare_process()
    if options.uids:
        sandbox.drop_rights(options.processes)
    own = Uids(options.uids) if options.uids else None
    stream = (
        _inherited(options.descriptor)
        if options.socket is None
        else _awaited(parser, options.socket, own, told)
    )
    if stream is None:
        return
    runner = Runner(
        SocketLink(stream),
        is_isolating=_isolates(options),
        is_handing_down=options.hand_down,
        uids=own,
    )
    runner.end_on(told.fileno())
    why = runner.run()
    if options.socket:
        _say(f"all has ended, as {why}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("workron_runner", description="Runs commands for one agent.")
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("--descriptor", type=int, help="a connected stream socket, inherited")
    ways.add_argument("--socket", type=_path, metavar="PATH", help="where to wait for the agent")
    parser.add_argument(
        "--isolate", action="store_true", help="shut commands off from each other, with Landlock"
    )
    parser.add_argument(
        "--try-isolate", action="store_true", help="the same where the kernel has it, else say so"
    )
    parser.add_argument(
        "--uids", type=_range, metavar="FIRST-LAST",
        help="give each command a uid of its own; the first is the runner's, for ending the others",
    )  # fmt: skip
    parser.add_argument(
        "--processes", type=int, metavar="N", help="so many processes and threads per command"
    )
    parser.add_argument(
        "--hand-down", action="store_true", help="give commands the environment of the runner"
    )
    return parser


def _read(parser: argparse.ArgumentParser) -> argparse.Namespace:
    options = parser.parse_args()
    if not spawn.is_known_here():
        parser.error("commands need glibc 2.29 or musl 1.1.24, or newer; this C library is older")
    if options.isolate and not sandbox.has_landlock():
        parser.error("--isolate needs a kernel with Landlock and its scopes: Linux 6.12 or newer")
    _check_rights(parser, options)
    return options


def _isolates(options: argparse.Namespace) -> bool:
    if options.try_isolate and not sandbox.has_landlock():
        _say("commands can reach each other: this kernel has no Landlock with scopes (Linux 6.12)")
        return False
    return bool(options.isolate or options.try_isolate)


def _path(text: str) -> pathlib.Path:
    return pathlib.Path(text).absolute()


def _range(text: str) -> Range:
    try:
        return Range.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no range of two or more uids that are not root's, as 100000-100099"
        ) from None


def _check_rights(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    try:
        if options.uids:
            sandbox.check_uid_rights(options.uids)
    except sandbox.SandboxError as error:
        parser.error(f"--uids {error}")
    if options.processes is None:
        return
    if options.processes < 1 or not options.uids:
        parser.error("--processes needs a number above 0, and --uids: those of a uid are counted")
    try:
        sandbox.check_process_limit()
    except sandbox.SandboxError as error:
        parser.error(f"--processes {error}")


def _inherited(descriptor: int) -> socket.socket:
    stream = socket.socket(fileno=descriptor)
    # It was handed over by inheritance; no command is to have it too.
    stream.set_inheritable(False)
    return stream


def _awaited(
    parser: argparse.ArgumentParser, path: pathlib.Path, own: Uids | None, told: socket.socket
) -> socket.socket | None:
    # First of all: who comes may rely on it that nothing runs here but for him.
    try:
        process_reaper.clear_leftovers()
    except FileNotFoundError as error:
        parser.error(f"commands need a writable folder, and there is none: {error.strerror}")
    if own is not None:
        own.end_all()
    try:
        door = SocketListener(path, told)
    except OSError as error:
        parser.error(f"--socket: {path} cannot be made: {error.strerror or error}")
    _say(f"an agent is waited for at {path}")
    stream = door.let_in()
    _say("an agent has come" if stream else "nobody has come, and the runner was asked to end")
    return stream


def _say(line: str) -> None:
    """Log a line: nobody else tells what becomes of a runner that was started by itself."""
    sys.stderr.write(f"workron_runner: {line}\n")


if __name__ == "__main__":
    main()
