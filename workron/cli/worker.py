"""`workron worker`: one worker of one pool, on this machine, for jobs of a store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import structlog
import typer

from workron.cli import health, local_workers, options, system_clock
from workron.cli.health import Address
from workron.cli.local_workers import LocalWorkers, executor_of, tokens_of
from workron.cli.signals import DrainSignals, SignalledService
from workron.cli.stores import opened, opened_as_worker
from workron.core import errors, formats, ids, lease
from workron.telemetry import logging
from workron_runner import sandbox
from workron_runner.sandbox import hide
from workron_runner.uids import Range
from workron_worker import identity
from workron_worker.config import AgentConfig
from workron_worker.meter import WorkerMeter
from workron_worker.runner_connection import ChildRunners, RunnerOptions, Runners, SocketRunners

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from workron.store.types import Session


Isolate = Annotated[
    bool,
    typer.Option("--isolate", help="Shut commands off from each other, with Landlock."),
]
Uids = Annotated[
    str | None,
    typer.Option(
        metavar="FIRST-LAST", help="Give each command a uid of its own out of these; needs root."
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(min=1, help="At most so many processes of one command; needs --uids."),
]


def isolation_options(
    *, is_isolating: bool, uids: str | None, processes: int | None, slots: int
) -> RunnerOptions:
    """Say what a runner is to be started with; InputError if this machine cannot do that."""
    if is_isolating and not sandbox.has_landlock():
        raise errors.InputError(
            "--isolate needs a kernel with Landlock and its scopes: Linux 6.12 or newer"
        )
    if processes is not None and uids is None:
        raise errors.InputError("--processes needs --uids: the processes of a uid are counted")
    own = None if uids is None else _range(uids, slots)
    if processes is not None:
        _ask("--processes", sandbox.check_process_limit)
    return RunnerOptions(is_isolating, own, processes)


def _range(text: str, slots: int) -> Range:
    try:
        own = Range.parse(text)
    except ValueError:
        raise errors.InputError(
            f"--uids: {text!r} is no range of two or more uids that are not root's; write it like"
            " 100000-100099"
        ) from None
    if own.size <= slots:
        raise errors.InputError(
            f"--uids: {own} are {own.size} uids, and --slots {slots} need {slots + 1}: one for each"
            " command, and the first is the runner's own"
        )
    _ask("--uids", lambda: sandbox.check_uid_rights(own))
    return own


def _ask(option: str, check: Callable[[], None]) -> None:
    try:
        check()
    except sandbox.SandboxError as error:
        raise errors.InputError(f"{option} {error}") from None


RunnerPath = Annotated[
    pathlib.Path | None,
    typer.Option(
        "--runner",
        envvar="WORKRON_RUNNER",
        metavar="PATH",
        help="Where a runner waits, as in another container; default: it starts one.",
    ),
]
_LONGEST_PATH: Final = 107
"""Bytes of a socket's path, in Linux."""


def runner_from_options(
    at: pathlib.Path | None,
    *,
    is_isolating: bool,
    uids: str | None,
    processes: int | None,
    slots: int,
) -> Runners:
    """Say where runners come from; InputError if it contradicts itself, or cannot be here."""
    if at is None:
        return ChildRunners(
            isolation_options(
                is_isolating=is_isolating, uids=uids, processes=processes, slots=slots
            )
        )
    given = {"--isolate": is_isolating, "--uids": uids, "--processes": processes}
    if options := [name for name, value in given.items() if value]:
        raise errors.InputError(
            f"{options[0]} is for a runner that this worker starts; of the one that waits at {at}"
            f" it is asked where that is started: python3 -m workron_runner --socket {at}"
            f" {options[0]}"
        )
    if not 0 < len(os.fsencode(at.name)) <= len(os.fsencode(at)) <= _LONGEST_PATH:
        raise errors.InputError(
            f"--runner: {str(at)!r} is no path of a socket, which has at most {_LONGEST_PATH} bytes"
        )
    return SocketRunners(at)


def prepare_runner(runners: Runners) -> None:
    """Clear away what killed workers left, if commands are to run beneath this process."""
    if not runners.are_awaited:
        local_workers.need_temporary_folder()
        identity.sweep_dead_workers()


@contextlib.contextmanager
def log_runner(runners: Runners, boot: UUID) -> Iterator[None]:
    """Leave a note for whoever clears up here, if commands run beneath this process."""
    with contextlib.nullcontext() if runners.are_awaited else identity.registered_boot(boot):
        yield


_log = structlog.get_logger(__name__)
TOKEN: Final = "WORKRON_TOKEN"  # noqa: S105 - the name of a variable, and no token
POD: Final = "WORKRON_POD_UID"
_DEFAULT: Final = "default"
_NO_TOKEN: Final = (
    f"{TOKEN} is not set, and only the owner of the schema `workron` can do without it\n"
    "let the owner run `SELECT workron.ensure_pool('{}', '{}', 'TOKEN', NULL)` with a TOKEN that"
    " nobody can guess, and set it\n"
    "the store's answer to this role: {}"
)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The pool as it was asked for; None: nobody said, so a token decides."""

    namespace: str | None
    name: str | None

    @property
    def made(self) -> tuple[str, str]:
        """Name the pool that is made where there is no token."""
        return self.namespace or _DEFAULT, self.name or _DEFAULT

    def check(self, session: Session) -> None:
        """Raise TokenError if the session is one of another pool."""
        given = session.namespace, session.pool
        wanted = self.namespace or session.namespace, self.name or session.pool
        if given != wanted:
            raise errors.TokenError(
                f"the token in {TOKEN} is of pool {'/'.join(given)}, not of {'/'.join(wanted)}: set"
                " one of that pool, or leave --pool and --namespace out, as the token decides"
            )


@dataclass(frozen=True, slots=True)
class _Settings:
    store: str
    pool: _Wanted
    name: str
    slots: int
    grace: timedelta
    rhythm: AgentConfig
    runners: Runners
    health: Address | None


def worker(  # noqa: PLR0913, PLR0917 - one for each option
    store: options.Store = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Namespace of the pool; default: the token's."),
    ] = None,
    pool: Annotated[
        str | None, typer.Option(help="Whose jobs it runs; default: the token's.")
    ] = None,
    slots: options.Slots = None,
    max_jobs: Annotated[int | None, typer.Option(min=1, help="End after so many jobs.")] = None,
    idle_exit: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="End when there was nothing to run for so long."),
    ] = None,
    heartbeat: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How often it proves that it lives; four times a lease at least.",
        ),
    ] = "2s",
    grace: Annotated[
        str,
        typer.Option(metavar="DURATION", help="So long what runs may run on after a signal."),
    ] = "25s",
    is_isolating: Isolate = False,
    uids: Uids = None,
    processes: Processes = None,
    at: RunnerPath = None,
    where: options.Health = None,
    log_format: options.Log = None,
) -> None:
    """Claim jobs of a pool from a store and run them on this machine, until a signal comes.

    The token in WORKRON_TOKEN decides which pool that is; one that --pool or --namespace does not
    name is refused. Without a token the pool is made, else default/default, which needs a role
    that owns the store. The first TERM, HUP or Ctrl-C has it claim nothing more and let run
    what runs, for as long as --grace; the second ends that at once. What is ended so is handed
    back and costs no attempt. Exits with 0 after either, but with 1 if the store is away by then
    and cannot be told of what it held.
    """
    hide()
    logging.serve(log_format)
    service = SignalledService("worker drains")
    idle = None if idle_exit is None else options.duration("--idle-exit", idle_exit)
    commands = options.slots(slots)
    settings = _Settings(
        store=options.lasting(store),
        pool=_Wanted(
            None if namespace is None else options.name("--namespace", namespace, formats.LABEL),
            None if pool is None else options.name("--pool", pool, formats.POOL_NAME),
        ),
        name=_name(),
        slots=commands,
        grace=options.duration("--grace", grace),
        # A store that is away has cost it all that ran, and will cost it nothing more.
        rhythm=AgentConfig(
            heartbeat=_beat(heartbeat),
            patience=timedelta.max,
            most_jobs=max_jobs,
            longest_idle=idle,
        ),
        runners=runner_from_options(
            at, is_isolating=is_isolating, uids=uids, processes=processes, slots=commands
        ),
        health=health.given(where),
    )
    service.carry_out(_serve(settings, service))


def _beat(text: str) -> timedelta:
    beat = options.duration("--heartbeat", text)
    if beat < lease.MIN_HEARTBEAT:
        shortest = formats.format_duration(lease.MIN_HEARTBEAT)
        raise errors.InputError(f"--heartbeat: {text} is too short; at least {shortest}")
    return beat


def _name() -> str:
    pod = os.environ.get(POD)
    if pod is None:
        return identity.own_name()
    try:
        return identity.pods_name(pod)
    except ValueError:
        raise errors.InputError(
            f"{POD} is {pod!r}, which is no uid of a pod: take it from the field `metadata.uid`"
        ) from None


async def _serve(settings: _Settings, service: SignalledService) -> None:
    # From the very beginning: it lives while it sweeps up and opens its store. A store that is away
    # then ends it; only one that went away later is waited for.
    async with health.of_worker(settings.health, settings.slots, system_clock.CLOCK) as meter:
        await _work(settings, meter, service)


async def _work(settings: _Settings, meter: WorkerMeter, service: SignalledService) -> None:
    await asyncio.to_thread(prepare_runner, settings.runners)
    token = os.environ.get(TOKEN) or await _take_token(settings)
    async with opened_as_worker(settings.store) as store:
        boot = ids.mint_uuid(system_clock.RNG)
        with contextlib.ExitStack() as stack:
            stack.enter_context(log_runner(settings.runners, boot))
            executor = executor_of(boot, settings.runners, meter)
            crew = LocalWorkers(
                store, executor, settings.slots, rhythm=settings.rhythm, meter=meter
            )
            stack.enter_context(contextlib.closing(crew))
            crew.hire([token], settings.pool.check, settings.name)
            service.hand_over(DrainSignals(crew, settings.grace, asyncio.get_running_loop()).hear)
            await crew.run()


async def _take_token(settings: _Settings) -> str:
    """Make the pool; what dead workers of this machine held needs no lease to pass, then."""
    pool = settings.pool.made
    try:
        async with opened(settings.store) as store:
            for line in await local_workers.recover(store):
                _log.warning(line)
            [token] = await tokens_of(store, [pool])
    except errors.PermissionDeniedError as error:
        raise errors.PermissionDeniedError(_NO_TOKEN.format(*pool, error)) from error
    return token
