"""The harness of one test: a database, an execution log, workers and maintainers.

The fixture `harness` ends them after every test, and checks that no process or folder is left.
"""

import contextlib
import os
import pathlib
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import asyncpg
import yaml

from faults import checker, execution_log, processes, programs
from faults.checker import Findings, Freeze, StoreState
from faults.loop_thread import LoopThread
from faults.polling import until
from faults.programs import Program, Runner, Worker
from faults.proxy import Proxy
from tests.postgres_server import Server

LEASE_SECONDS = 2.0
"""The shortest lease in which a worker sends heartbeats in time on a busy machine."""
_T = TypeVar("_T")
_NAMESPACE = "default"
_POOL = "default"
_JOBS = """
    SELECT j.id, r.name AS root, j.name, j.index, d.state, d.attempts
    FROM workron.job j JOIN workron.run r ON r.id = j.run
    LEFT JOIN workron.done d ON d.job = j.id WHERE j.kind = 'Job'
    """
_EDGES = """
    SELECT coalesce(m.id, e.upstream) AS upstream, e.downstream AS downstream
    FROM workron.edge e LEFT JOIN workron.job m ON m.group_id = e.upstream
    """


def now() -> float:
    """Read the clock of the execution log."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Submission(NamedTuple):
    """A workflow that is being submitted, and its jobs."""

    program: Program
    jobs: list[tuple[str, str, int | None]]


def _indexes(task: dict[str, Any]) -> Iterable[int | None]:
    return range(task["count"]) if "count" in task else [None]


class FaultHarness:
    """The programs, database and execution log of one test."""

    def __init__(self, folder: pathlib.Path, server: Server, dsn: str, loop: LoopThread) -> None:
        self.folder = folder
        self.server = server
        self.dsn = dsn
        self.execution_log = folder / "execution_log"
        self.execution_log.touch()
        # A command may run as another user than its worker.
        self.execution_log.chmod(0o666)
        self.workers: list[Worker] = []
        self.freezes: list[Freeze] = []
        self._frozen: dict[str, float] = {}
        self._programs: list[Program] = []
        self._acknowledged: list[tuple[str, str, int | None]] = []
        self._loop = loop
        self._proxies: list[Proxy] = []
        self._known = frozenset(one.pid for one in processes.descendants(os.getpid()))
        self._tokens: dict[float, str] = {}

    def worker(
        self,
        *options: object,
        lease_seconds: float = LEASE_SECONDS,
        proxy: Proxy | None = None,
        after: Worker | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Worker:
        """Start a worker with its own proxy, on a new machine or on that of an earlier worker.

        A temporary folder stands for a machine.
        """
        folder = after.folder if after else self.folder / f"w{len(self.workers):03}"
        defaults = ("--log", "json", "--grace", "5s")
        settings = {"WORKRON_TOKEN": self.token(lease_seconds), **(environment or {})}
        one = Worker(folder, proxy or self.proxy(), [*defaults, *options], settings)
        self.workers.append(one)
        self._programs.append(one)
        return one

    def runner(self, after: Runner | None = None) -> Runner:
        """Start a standalone runner, or restart one in its place, as a kubelet would."""
        folder = after.folder if after else self.folder / f"r{len(self._programs):03}"
        one = Runner(folder, after.path if after else folder.with_suffix(".socket"))
        self._programs.append(one)
        return one

    def maintainer(self) -> Program:
        """Start a maintainer."""
        number = len(self._programs)
        arguments = ["maintain", "--store", self.dsn, "--log", "json"]
        self._programs.append(Program(self.folder / f"m{number:03}", arguments, {}))
        return self._programs[-1]

    def proxy(self) -> Proxy:
        """Create a proxy to the database."""
        self._proxies.append(Proxy(self._loop, self.dsn))
        return self._proxies[-1]

    def token(self, lease_seconds: float) -> str:
        """Return the token of a pool with this lease."""
        if lease_seconds not in self._tokens:
            token = self._tokens[lease_seconds] = f"token-{len(self._tokens)}"
            call = "SELECT workron.ensure_pool($1, $2, $3, $4)"
            self.query(call, _NAMESPACE, _POOL, token, lease_seconds)
        return self._tokens[lease_seconds]

    def submit(self, name: str, **tasks: Any) -> None:
        """Submit a workflow; a task given as text is its command, which logs its execution."""
        submission = self.begin_submission(name, **tasks)
        submission.program.wait()
        self.acknowledge(submission)

    def begin_submission(self, name: str, **tasks: Any) -> Submission:
        """Begin to submit a workflow; its jobs count once it is acknowledged."""
        written = [{"name": task, **self._spec(spec)} for task, spec in tasks.items()]
        flow = {
            "apiVersion": "workron.dev/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": name},
            "spec": {"tasks": written},
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(flow))
        arguments = ["submit", path, "--store", self.dsn]
        program = Program(self.folder / f"submit-{name}", arguments, {})
        jobs = [(name, one["name"], index) for one in written for index in _indexes(one)]
        return Submission(program, jobs)

    def acknowledge(self, submission: Submission) -> None:
        """Count the jobs of a submission that the command has acknowledged."""
        assert submission.program.wait() == 0, submission.program.log_tail()
        self._acknowledged += submission.jobs

    def _spec(self, spec: str | dict[str, Any]) -> dict[str, Any]:
        given = {"command": spec} if isinstance(spec, str) else dict(spec)
        given["command"] = execution_log.command(
            self.execution_log, textwrap.dedent(given["command"])
        )
        return given

    def until(self, condition: Callable[[], _T], what: str, seconds: float = 30) -> _T:
        """Wait; on a timeout, report the last lines of all logs."""
        return until(condition, what, seconds, self.logs)

    def query(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        """Query the database as its owner."""
        return self._loop.call(_query(self.dsn, statement, values))

    def value(self, statement: str, *values: Any) -> Any:
        """Query one value."""
        return self.query(statement, *values)[0][0]

    def executions(self) -> list[execution_log.Execution]:
        """Read the execution log."""
        return execution_log.read(self.execution_log)

    def await_execution(self, attempt: int = 1) -> execution_log.Execution:
        """Wait for the first execution with this attempt number."""

        def found() -> list[execution_log.Execution]:
            return [one for one in self.executions() if one.attempt == attempt]

        return self.until(found, f"attempt {attempt} begins")[0]

    def await_end(self, seconds: float = 30) -> None:
        """Wait until every job has ended."""
        self.until(lambda: not self.unfinished(), "all jobs end", seconds)

    def unfinished(self) -> int:
        """Count the jobs without an end."""
        count: int = self.value(
            "SELECT count(*) FROM workron.job j WHERE j.kind = 'Job'"
            " AND NOT EXISTS (SELECT 1 FROM workron.done d WHERE d.job = j.id)"
        )
        return count

    def await_death(self, execution: execution_log.Execution, seconds: float = 1) -> None:
        """Wait until a command is dead; fail after `seconds`."""
        self.until(lambda: not processes.is_alive(execution.pid), "the command is dead", seconds)

    def await_heartbeats(self, worker: Worker, count: int) -> None:
        """Wait until this many more heartbeats of a worker are answered."""
        enough = worker.proxy.answered["heartbeat"] + count
        self.until(
            lambda: worker.proxy.answered["heartbeat"] >= enough, f"{worker.name} sends heartbeats"
        )

    def await_reap(self, worker: Worker) -> None:
        """Wait until the store has reaped the worker of that process."""
        self.until(lambda: not self.knows(worker), f"{worker.name} is reaped")

    def knows(self, worker: Worker) -> bool:
        """Whether that process is registered."""
        names = [row["name"] for row in self.query("SELECT name FROM workron.worker")]
        return any(f":{worker.pid}:" in name for name in names)

    def states(self) -> dict[str, tuple[str, str | None, int, int, int]]:
        """Return state, reason, attempts, failures and losses of each ended task."""
        return {
            row["name"]: (
                row["state"], row["reason"], row["attempts"], row["failures"], row["losses"],
            )
            for row in self._ended()
        }  # fmt: skip

    def rows(self, *columns: str) -> list[tuple[object, ...]]:
        """Return these columns of every ended job."""
        return [tuple(row[one] for one in columns) for row in self._ended()]

    def _ended(self) -> list[asyncpg.Record]:
        return self.query(
            "SELECT j.name, d.* FROM workron.done d JOIN workron.job j ON j.id = d.job"
            " WHERE j.kind = 'Job'"
        )

    def store_state(self) -> StoreState:
        """Read jobs, attempts and edges from the store."""
        rows = self.query(_JOBS)
        attempts = self.query("SELECT job, attempt, outcome FROM workron.attempt")
        return StoreState(
            jobs={row["id"]: (row["root"], row["name"], row["index"]) for row in rows},
            done={row["id"]: (row["state"], row["attempts"]) for row in rows if row["state"]},
            attempts=[(row["job"], row["attempt"], row["outcome"]) for row in attempts],
            edges=[(row["upstream"], row["downstream"]) for row in self.query(_EDGES)],
        )

    def check(self) -> Findings:
        """Compare the execution log with the store."""
        return checker.check(
            self._acknowledged, self.executions(), self.store_state(), self.freezes
        )

    def assert_nothing_found(self) -> None:
        """Fail if the checker finds an error, or executions that overlap."""
        findings = self.check()
        assert (findings.errors, findings.overlaps) == ([], [])

    def logs(self) -> str:
        """Return the last lines of all logs."""
        return "\n".join(f"--- {one.folder.name}\n{one.log_tail()}" for one in self._programs)

    @contextlib.contextmanager
    def frozen(self, worker: Worker, *pids: int) -> Iterator[None]:
        """Freeze processes of a worker during the context."""
        self.freeze(worker, *pids)
        try:
            yield
        finally:
            self.thaw(worker, *pids)

    def freeze(self, worker: Worker, *pids: int) -> float:
        """Freeze processes of a worker; return the time."""
        since = self._frozen[worker.name] = now()
        worker.stop(*pids)
        return since

    def thaw(self, worker: Worker, *pids: int) -> None:
        """Continue the processes."""
        worker.wake(*pids)
        self.freezes.append(Freeze(worker.name, self._frozen.pop(worker.name), now()))

    def close(self) -> None:
        """Stop all programs, and check that no process, file or session is left."""
        try:
            alive = [one for one in self._programs if one.is_alive]
            for one in alive:
                one.terminate()
            codes = {one.folder.name: one.wait() for one in alive}
            assert not any(codes.values()), f"{codes}\n{self.logs()}"
            self._clean_up_killed()
            self._check_empty(self._processes, "processes are left")
            self._check_empty(self._files, "files are left")
        finally:
            self._end_all()
            for proxy in self._proxies:
                proxy.close()
        self._check_empty(self._sessions, "sessions of the database are left")

    def _clean_up_killed(self) -> None:
        """Start a worker in the place of each killed one, which cleans up."""
        killed = {one.folder: one for one in self.workers if any(one.folder.iterdir())}
        successors = [self.worker("--idle-exit", "1ms", after=one) for one in killed.values()]
        assert not any(successor.wait() for successor in successors), self.logs()

    def _check_empty(self, left: Callable[[], Sequence[object]], what: str) -> None:
        until(lambda: not left(), what, 10, lambda: f"{left()}\n{self.logs()}")

    def _processes(self) -> Sequence[object]:
        return programs.leftovers(self._known, self.server.home)

    def _files(self) -> Sequence[object]:
        left = [path for one in self._programs for path in one.folder.iterdir()]
        return [*left, *programs.sockets(self.folder)]

    def _sessions(self) -> Sequence[object]:
        return self.query(
            "SELECT pid, state, query FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )

    def _end_all(self) -> None:
        for one in self._programs:
            if one.is_alive:
                one.kill()
                one.wait()
        for process in programs.leftovers(self._known, self.server.home):
            os.kill(process.pid, 9)


async def _query(dsn: str, statement: str, values: tuple[Any, ...]) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(dsn)
    try:
        return list(await connection.fetch(statement, *values))
    finally:
        await connection.close()
