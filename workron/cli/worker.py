"""`workron worker`: runs jobs of one pool of a store on this machine.

Order of the start: options are checked, the health endpoint opens, leftovers of dead workers are
removed, the store is opened, and the agent registers. The token in WORKRON_TOKEN decides the pool.
Without a token, a role that owns the store creates the pool.
"""

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
from workron.cli.local_workers import LocalWorkers
from workron.cli.options import Address
from workron.cli.signals import DrainSignals, SignalledService
from workron.cli.stores import opened, opened_as_worker
from workron.core import errors, formats, ids, lease
from workron.telemetry import logging
from workron_runner import sandbox
from workron_runner.sandbox import make_undumpable
from workron_runner.uids import UidRange
from workron_worker import identity
from workron_worker.config import AgentConfig
from workron_worker.metrics import WorkerMetrics
from workron_worker.runner_client import RunnerExecutor
from workron_worker.runner_connection import ChildRunners, Runners, SocketRunners

if TYPE_CHECKING:
    from collections.abc import Callable

    from workron.cli.health import HealthSubject
    from workron.store.types import Session


TOKEN: Final = "WORKRON_TOKEN"  # noqa: S105 - the name of a variable, and no token
POD: Final = "WORKRON_POD_UID"
_DEFAULT: Final = "default"
_NO_TOKEN: Final = (
    f"{TOKEN} is not set; only the owner of the schema `workron` can work without a token\n"
    "as the owner, run `SELECT workron.ensure_pool('{}', '{}', 'TOKEN', NULL)` with a secret TOKEN,"
    " and set it here\n"
    "the store answered: {}"
)
_MAX_SOCKET_PATH: Final = 107
"""Bytes, in Linux."""
_log = structlog.get_logger(__name__)


Namespace = Annotated[
    str | None,
    options.name(
        "--namespace",
        "-n",
        form=formats.LABEL,
        text="Namespace of the pool; default: from the token.",
    ),
]
Pool = Annotated[
    str | None,
    options.name(
        "--pool", form=formats.POOL_NAME, text="Pool to take jobs from; default: from the token."
    ),
]
MaxJobs = Annotated[int | None, typer.Option(min=1, help="Exit after this number of jobs.")]
IdleExit = Annotated[
    timedelta | None, options.duration("--idle-exit", "Exit after this time without jobs.")
]
Heartbeat = Annotated[
    timedelta,
    options.duration(
        "--heartbeat",
        "Heartbeat interval; at most a quarter of the lease. Default: 2s.",
        minimum=lease.MIN_HEARTBEAT,
    ),
]
Grace = Annotated[
    timedelta,
    options.duration(
        "--grace", "Time that running jobs have to finish after a signal. Default: 25s."
    ),
]
Isolate = Annotated[
    bool,
    typer.Option("--isolate", help="Isolate commands from each other with Landlock."),
]
Uids = Annotated[
    str | None,
    typer.Option(metavar="FIRST-LAST", help="Run each command under its own uid; needs root."),
]
Processes = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of processes of a command; needs --uids."),
]
RunnerPath = Annotated[
    pathlib.Path | None,
    typer.Option(
        "--runner",
        envvar="WORKRON_RUNNER",
        metavar="PATH",
        help="Socket of a runner in another container; default: start a runner.",
    ),
]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The options of one `workron worker`."""

    store: str
    namespace: str | None
    pool: str | None
    name: str
    slots: int
    grace: timedelta
    config: AgentConfig
    runners: Runners
    health: Address | None

    def check_session(self, session: Session) -> None:
        """Raise TokenError if the session belongs to another pool than the options."""
        given = session.namespace, session.pool
        wanted = self.namespace or session.namespace, self.pool or session.pool
        if given != wanted:
            raise errors.TokenError(
                f"the token in {TOKEN} is for pool {'/'.join(given)}, not {'/'.join(wanted)}; set"
                " the token of that pool, or omit --pool and --namespace"
            )


def worker(  # noqa: PLR0913, PLR0917 - one for each option
    store: options.Store,
    namespace: Namespace = None,
    pool: Pool = None,
    slots: options.Slots = None,
    max_jobs: MaxJobs = None,
    idle_exit: IdleExit = None,
    heartbeat: Heartbeat = timedelta(seconds=2),
    grace: Grace = timedelta(seconds=25),
    is_isolating: Isolate = False,
    uids: Uids = None,
    processes: Processes = None,
    at: RunnerPath = None,
    where: options.Health = None,
    log_format: options.Log = None,
) -> None:
    """Run jobs of one pool of a store on this machine, until a signal arrives.

    The token in WORKRON_TOKEN decides the pool; --pool and --namespace must match it. Without a
    token, the pool (default: default/default) is created, which needs a role that owns the store.
    The first SIGTERM, SIGHUP or Ctrl-C drains the worker: it claims no more jobs, and running jobs
    have --grace to finish. A second signal stops them. Stopped jobs are requeued, and the attempt
    does not count as a failure. Exits with 0 after a signal, or with 1 if the store does not answer
    and jobs could not be requeued; they are requeued when the lease expires.
    """
    make_undumpable()
    logging.serve(log_format)
    service = SignalledService("worker stopping")
    commands = options.slots(slots)
    settings = WorkerSettings(
        store=store,
        namespace=namespace,
        pool=pool,
        name=_name(),
        slots=commands,
        grace=grace,
        # After an outage longer than the lease all claims are lost, and more waiting costs nothing.
        config=AgentConfig(
            heartbeat, store_timeout=timedelta.max, max_jobs=max_jobs, idle_exit=idle_exit
        ),
        runners=runners_from_options(
            at, is_isolating=is_isolating, uids=uids, processes=processes, slots=commands
        ),
        health=where,
    )
    service.run(_work(settings, service))


def _name() -> str:
    pod = os.environ.get(POD)
    try:
        return identity.process_name() if pod is None else identity.pod_name(pod)
    except ValueError:
        raise errors.InputError(
            f"{POD} is {pod!r}, which is not a pod uid; set it from the field `metadata.uid`"
        ) from None


def runners_from_options(
    at: pathlib.Path | None,
    *,
    is_isolating: bool,
    uids: str | None,
    processes: int | None,
    slots: int,
) -> Runners:
    """Return how to get runners; InputError if options conflict or are not supported here."""
    if at is not None:
        given = {"--isolate": is_isolating, "--uids": uids, "--processes": processes}
        if options := [name for name, value in given.items() if value]:
            raise errors.InputError(
                f"{options[0]} cannot be combined with --runner; pass it where that runner is"
                f" started: python3 -m workron_runner --socket {at} {options[0]}"
            )
        if not 0 < len(os.fsencode(at.name)) <= len(os.fsencode(at)) <= _MAX_SOCKET_PATH:
            raise errors.InputError(
                f"--runner: {str(at)!r} is not a socket path of at most {_MAX_SOCKET_PATH} bytes"
            )
        return SocketRunners(at)
    if is_isolating and not sandbox.has_landlock():
        raise errors.InputError("--isolate needs Landlock with scopes: Linux 6.12 or newer")
    if processes is not None and uids is None:
        raise errors.InputError(
            "--processes needs --uids, because the kernel counts processes by uid"
        )
    own = None if uids is None else _uid_range(uids, slots)
    if processes is not None:
        _check_support("--processes", sandbox.check_process_limit)
    return ChildRunners(is_isolating, own, processes)


def _uid_range(text: str, slots: int) -> UidRange:
    try:
        own = UidRange.parse(text)
    except ValueError:
        raise errors.InputError(
            f"--uids: {text!r} is not a range of at least two uids above 0; write it like"
            " 100000-100099"
        ) from None
    if own.size <= slots:
        raise errors.InputError(
            f"--uids: {own} has {own.size} uids, but --slots {slots} needs {slots + 1}: one for"
            " each command and one for the runner"
        )
    _check_support("--uids", lambda: sandbox.check_uid_privileges(own))
    return own


def _check_support(option: str, check: Callable[[], None]) -> None:
    try:
        check()
    except sandbox.SandboxError as error:
        raise errors.InputError(f"{option} {error}") from None


async def _work(settings: WorkerSettings, service: SignalledService) -> None:
    metrics = WorkerMetrics()

    def exporter() -> HealthSubject:
        from workron_worker.metrics_exporter import WorkerExporter

        return WorkerExporter(metrics, settings.slots, system_clock.CLOCK)

    # The health endpoint opens first: cleaning up and connecting may take a while. An unreachable
    # store ends the start, and is waited for only once the worker has registered.
    with health.served(settings.health, exporter, system_clock.CLOCK):
        if not settings.runners.are_external:
            local_workers.require_temporary_folder()
            await asyncio.to_thread(identity.clean_up_dead_workers)
        token = os.environ.get(TOKEN) or await _create_pool(settings)
        async with opened_as_worker(settings.store) as store:
            boot = ids.mint_uuid(system_clock.RNG)
            with contextlib.ExitStack() as stack:
                if not settings.runners.are_external:
                    # The next worker finds what this one leaves if it is killed.
                    stack.enter_context(identity.recorded_worker(boot))
                executor = RunnerExecutor(
                    grace=system_clock.KILL_GRACE,
                    boot=boot,
                    runners=settings.runners,
                    metrics=metrics,
                )
                workers = LocalWorkers(
                    store, executor, settings.slots, config=settings.config, metrics=metrics
                )
                stack.enter_context(contextlib.closing(workers))
                workers.add_agents([token], settings.check_session, settings.name)
                loop = asyncio.get_running_loop()
                service.handle = DrainSignals(workers, settings.grace, loop.call_later).handle
                await workers.run()


async def _create_pool(settings: WorkerSettings) -> str:
    """Create the pool and return its token; reap dead workers of this machine."""
    pool = settings.namespace or _DEFAULT, settings.pool or _DEFAULT
    try:
        async with opened(settings.store) as store:
            for line in await local_workers.reap_dead_workers(store):
                _log.warning(line)
            [token] = await local_workers.ensure_pools(store, [pool])
    except errors.PermissionDeniedError as error:
        raise errors.PermissionDeniedError(_NO_TOKEN.format(*pool, error)) from error
    return token
