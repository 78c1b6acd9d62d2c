"""`workron worker`: one worker of one pool, on this machine, for jobs of a store."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import structlog
import typer

from workron.cli import apart, health, log, options, recovery, runner, system
from workron.cli.crew import Crew, executor_of, tokens_of
from workron.cli.drain import Drain
from workron.cli.health import Address
from workron.cli.opening import opened, opened_as_worker
from workron.cli.service import Service
from workron.core import duration, errors, form, ids, lease
from workron_runner.system import hide
from workron_worker import identity
from workron_worker.meter import Meter
from workron_worker.runner_line import Runners
from workron_worker.surroundings import Rhythm

if TYPE_CHECKING:
    from workron.store.protocol import Session

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
    rhythm: Rhythm
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
    is_isolating: apart.Isolate = False,
    uids: apart.Uids = None,
    processes: apart.Processes = None,
    at: runner.At = None,
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
    log.serve(log_format)
    service = Service("worker drains")
    idle = None if idle_exit is None else options.duration("--idle-exit", idle_exit)
    commands = options.slots(slots)
    settings = _Settings(
        store=options.lasting(store),
        pool=_Wanted(
            None if namespace is None else options.name("--namespace", namespace, form.LABEL),
            None if pool is None else options.name("--pool", pool, form.POOL_NAME),
        ),
        name=_name(),
        slots=commands,
        grace=options.duration("--grace", grace),
        # A store that is away has cost it all that ran, and will cost it nothing more.
        rhythm=Rhythm(
            beat=_beat(heartbeat), patience=timedelta.max, most_jobs=max_jobs, longest_idle=idle
        ),
        runners=runner.of(
            at, is_isolating=is_isolating, uids=uids, processes=processes, slots=commands
        ),
        health=health.given(where),
    )
    service.carry_out(_serve(settings, service))


def _beat(text: str) -> timedelta:
    beat = options.duration("--heartbeat", text)
    if beat < lease.SHORTEST_BEAT:
        shortest = duration.render(lease.SHORTEST_BEAT)
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


async def _serve(settings: _Settings, service: Service) -> None:
    # From the very beginning: it lives while it sweeps up and opens its store. A store that is away
    # then ends it; only one that went away later is waited for.
    async with health.of_worker(settings.health, settings.slots, system.CLOCK) as meter:
        await _work(settings, meter, service)


async def _work(settings: _Settings, meter: Meter, service: Service) -> None:
    await asyncio.to_thread(runner.prepare, settings.runners)
    token = os.environ.get(TOKEN) or await _take_token(settings)
    async with opened_as_worker(settings.store) as store:
        boot = ids.mint_uuid(system.RNG)
        with contextlib.ExitStack() as stack:
            stack.enter_context(runner.noted(settings.runners, boot))
            executor = executor_of(boot, settings.runners, meter)
            crew = Crew(store, executor, settings.slots, rhythm=settings.rhythm, meter=meter)
            stack.enter_context(contextlib.closing(crew))
            crew.hire([token], settings.pool.check, settings.name)
            service.hand_over(Drain(crew, settings.grace, asyncio.get_running_loop()).hear)
            await crew.run()


async def _take_token(settings: _Settings) -> str:
    """Make the pool; what dead workers of this machine held needs no lease to pass, then."""
    pool = settings.pool.made
    try:
        async with opened(settings.store) as store:
            for line in await recovery.recover(store):
                _log.warning(line)
            [token] = await tokens_of(store, [pool])
    except errors.StoreRightsError as error:
        raise errors.StoreRightsError(_NO_TOKEN.format(*pool, error)) from error
    return token
