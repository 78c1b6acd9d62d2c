"""A job, the workers of a pool and the controller can access what they need and nothing else.

All namespaces enforce the restricted Pod Security Standard, also for the tests of the other files.
"""

import base64
import json
import pathlib
import re
from urllib import parse

import pytest

from e2e.manifests import job, pool
from e2e.namespace import Namespace, command_waiting_for, wait_until
from e2e.release import RELEASE_NAMESPACE, Release

pytestmark = pytest.mark.timeout(600)

_PERMISSIONS = pathlib.Path(__file__).parent / "permissions.txt"
_OF_EVERY_ACCOUNT = re.compile(r"^(self\w+reviews\.|\s)")
"""Permissions of every account: query its own permissions, and the description of the API."""
_SEARCH_ALL_FILES = r"""
import os
for folder, _, names in os.walk("/"):
    if folder.startswith(("/sys", "/dev")):
        continue
    for name in names:
        path = os.path.join(folder, name)
        is_interesting = name in ("environ", "cmdline", "mountinfo", "tcp")
        if folder.startswith("/proc") and not is_interesting:
            continue
        try:
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                found = file.read(1 << 20)
        except OSError:
            continue
        for word in WORDS:
            if word.encode() in found:
                print("FOUND", path)
print("searched")
"""
_SEARCH_ENVIRONMENTS = r"""
import glob
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        if b"of-the-other" in open(path, "rb").read():
            print("FOUND", path)
    except OSError:
        pass
print("searched")
"""


@pytest.fixture(scope="module", autouse=True)
def _delete_leftovers(namespace: Namespace) -> None:
    namespace.try_kubectl("delete", "secret/given", "serviceaccount/user", "rolebinding/user")


def test_namespaces_enforce_the_restricted_standard(namespace: Namespace) -> None:
    label = "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}"
    for name in (RELEASE_NAMESPACE, namespace.name):
        assert namespace.cluster.kubectl("get", "ns", name, "-o", label) == "restricted"


def test_job_finds_neither_the_database_password_nor_a_token(namespace: Namespace) -> None:
    namespace.apply(pool("searched", slots=2), job("first", pool="searched"))
    namespace.wait_for_phase("first", "Succeeded")
    url, token = _credentials(namespace, "searched")
    password = parse.urlsplit(url).password
    assert password
    # In halves: otherwise the search would find the words in its own command.
    words = [[one[:9], one[9:]] for one in (password, token)]
    given = f"WORDS = [a + b for a, b in {words!r}]\nWORDS.append('serviceaccount' + '/token')"
    namespace.apply(
        job("searches", f"python3 - <<'END'\n{given}\n{_SEARCH_ALL_FILES}\nEND", pool="searched")
    )
    assert namespace.wait_for_phase("searches", "Succeeded")["outputTail"] == "searched\n"
    [pod] = namespace.pods("searched")
    assert "No such file" in namespace.try_kubectl(
        "exec", pod["metadata"]["name"], "-c", "runner", "--",
        "ls", "/var/run/secrets/kubernetes.io/serviceaccount",
    ).stderr  # fmt: skip


def test_job_gets_the_environment_of_its_pool_and_not_that_of_the_agent(
    namespace: Namespace,
) -> None:
    secret = ("create", "secret", "generic", "given", "--from-literal=KEY=for-commands")
    namespace.kubectl(*secret)
    namespace.apply(pool("with-env", envFrom=[{"secretRef": {"name": "given"}}]))
    namespace.apply(job("reads", "echo $KEY; env | grep -c WORKRON_STORE || true", pool="with-env"))
    assert namespace.wait_for_phase("reads", "Succeeded")["outputTail"] == "for-commands\n0\n"


def test_job_cannot_read_the_environment_of_a_job_beside_it(namespace: Namespace) -> None:
    namespace.apply(pool("shared", slots=2, replicas=1))
    hidden = [{"name": "HIDDEN", "value": "of-the-other"}]
    namespace.apply(job("other", command_waiting_for("other"), env=hidden, pool="shared"))
    pod = namespace.pod_running("other")
    wait_until(lambda: "test -e /tmp/other" in namespace.running_commands(pod), "the command runs")
    namespace.apply(
        job("searches-env", f"python3 - <<'END'\n{_SEARCH_ENVIRONMENTS}\nEND", pool="shared")
    )
    tail = namespace.wait_for_phase("searches-env", "Succeeded")["outputTail"]
    namespace.finish_commands(pod, "other")
    assert tail == "searched\n"


def test_database_role_of_a_pool_can_only_call_the_functions_of_a_worker(
    namespace: Namespace, release: Release
) -> None:
    for name in ("first", "second"):
        namespace.apply(
            pool(name, replicas=1), job(f"blocking-{name}", command_waiting_for(name), pool=name)
        )
    pods = {name: namespace.pod_running(f"blocking-{name}") for name in ("first", "second")}
    url, _ = _credentials(namespace, "first")
    their_url, their_token = _credentials(namespace, "second")
    theirs = parse.urlsplit(their_url).username
    backend = release.sql(f"SELECT pid FROM pg_stat_activity WHERE usename = '{theirs}' LIMIT 1")
    register = f"SELECT workron.register('{their_token}', 'me', gen_random_uuid(), 1)"
    for statement, refusal in (
        ("SELECT * FROM workron.job", "permission denied"),
        ("SELECT * FROM workron.worker", "permission denied"),
        ("DELETE FROM workron.done", "permission denied"),
        (f"ALTER ROLE \"{theirs}\" PASSWORD 'x'", "permission denied"),
        (f"SELECT pg_terminate_backend({backend})", "permission denied"),
        (f'SET ROLE "{theirs}"', "permission denied"),
        ("CREATE TABLE public.mine (a int)", "permission denied"),
        ("CREATE TEMP TABLE mine (a int)", "permission denied"),
        ("SELECT lo_create(0)", "permission denied"),
        ("SELECT workron.cancel(1)", "does not exist|permission denied"),
        ("SELECT workron.grant_pool()", "does not exist|permission denied"),
        ("SELECT workron.claim(gen_random_uuid(), ARRAY[gen_random_uuid()])", "session"),
        (register, "token"),
    ):
        result = _as_role(namespace, url, statement)
        assert re.search(refusal, result), f"{statement}: {result}"
    query = f"SELECT query FROM pg_stat_activity WHERE usename = '{theirs}' LIMIT 1"
    assert _as_role(namespace, url, query).strip() in {"<insufficient privilege>", ""}
    for name, pod in pods.items():
        namespace.finish_commands(pod, name)
        namespace.wait_for_phase(f"blocking-{name}", "Succeeded")


def test_accounts_have_exactly_the_listed_permissions(namespace: Namespace) -> None:
    assert _permissions(namespace) == _PERMISSIONS.read_text()


def test_user_of_one_namespace_cannot_access_another(namespace: Namespace) -> None:
    namespace.kubectl("create", "serviceaccount", "user")
    bind = ("--clusterrole=edit", f"--serviceaccount={namespace.name}:user")
    namespace.kubectl("create", "rolebinding", "user", *bind)
    who = f"--as=system:serviceaccount:{namespace.name}:user"
    made = json.dumps(job("of-a-user", "echo mine"))
    namespace.kubectl("create", who, "-f", "-", stdin=made)
    assert namespace.wait_for_phase("of-a-user", "Succeeded")["outputTail"] == "mine\n"
    for words in (("get", "wj"), ("get", "wpool"), ("create", "-f", "-"), ("get", "secrets")):
        refused = namespace.cluster.try_kubectl("-n", "default", *words, who, stdin=made)
        assert "orbidden" in refused.stderr, words
    forged = ("patch", "wj", "of-a-user", "--subresource=status", "--type=merge", "-p", "{}")
    assert "orbidden" in namespace.try_kubectl(*forged, who).stderr


def test_forged_status_is_corrected(namespace: Namespace) -> None:
    namespace.apply(job("forged", "exit 5", maxAttempts=1))
    namespace.wait_for_phase("forged", "Failed")
    forged = json.dumps({"status": {"phase": "Running", "exitCode": 0, "finishedAt": None}})
    namespace.kubectl("patch", "wj", "forged", "--subresource=status", "--type=merge", "-p", forged)
    # At the latest with the next resync.
    assert namespace.wait_for_phase("forged", "Failed", seconds=400)["exitCode"] == 5


def _permissions(namespace: Namespace) -> str:
    """List the permissions of each account, without those that every account has."""
    lines: list[str] = []
    for home, account, target in (
        (RELEASE_NAMESPACE, "workron-controller", RELEASE_NAMESPACE),
        (RELEASE_NAMESPACE, "workron-controller", namespace.name),
        (RELEASE_NAMESPACE, "workron-controller", "kube-system"),
        (RELEASE_NAMESPACE, "workron-database", RELEASE_NAMESPACE),
        (namespace.name, "default", namespace.name),
    ):
        who = f"--as=system:serviceaccount:{home}:{account}"
        result = namespace.cluster.kubectl("auth", "can-i", "--list", who, "-n", target)
        permissions = [" ".join(line.split()) for line in result.splitlines()[1:]]
        raw = zip(result.splitlines()[1:], permissions, strict=True)
        kept = sorted(one for line, one in raw if not _OF_EVERY_ACCOUNT.match(line))
        lines += [f"{account} in {target}:", *(f"  {one}" for one in kept or ["nothing"])]
    return "\n".join(lines) + "\n"


def _credentials(namespace: Namespace, name: str) -> tuple[str, str]:
    """Return the store URL and the token of a pool's agents."""
    found = namespace.cluster.get_json("-n", namespace.name, "secret", f"workron-pool-{name}")[
        "data"
    ]
    url, token = (base64.b64decode(found[key]).decode() for key in ("store", "token"))
    return url, token


def _as_role(namespace: Namespace, url: str, statement: str) -> str:
    inside = (
        "exec",
        "-n",
        RELEASE_NAMESPACE,
        "workron-database-0",
        "--",
        "psql",
        "--no-psqlrc",
        "-At",
        "-c",
    )
    done = namespace.cluster.try_kubectl(*inside, statement, url)
    return done.stdout + done.stderr
