"""A job reaches what it was given and nothing else, and so do a pool's workers and the controller.

The namespaces enforce the restricted Pod Security Standard, and all that the other files do is done
under it.
"""

import base64
import json
import pathlib
import re
from urllib import parse

import pytest

from e2e.manifests import job, pool
from e2e.place import Place, until, waits_for
from e2e.release import HOME, Release

pytestmark = pytest.mark.timeout(600)

_RIGHTS = pathlib.Path(__file__).parent / "rights.txt"
_EVERYBODYS = re.compile(r"^(self\w+reviews\.|\s)")
"""What every account may: to ask what it may, and what the API is like."""
_ALL_THERE_IS = r"""
import os
for folder, _, names in os.walk("/"):
    if folder.startswith(("/sys", "/dev")):
        continue
    for name in names:
        path = os.path.join(folder, name)
        is_told = folder.startswith("/proc") and name in ("environ", "cmdline", "mountinfo", "tcp")
        if folder.startswith("/proc") and not is_told:
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
print("looked")
"""
_SIBLING = r"""
import glob
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        if b"of-the-other" in open(path, "rb").read():
            print("FOUND", path)
    except OSError:
        pass
print("looked")
"""


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left(place: Place) -> None:
    place.asked("delete", "secret/given", "serviceaccount/person", "rolebinding/person")


def test_everything_passes_the_restricted_standard(place: Place) -> None:
    label = "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}"
    for namespace in (HOME, place.namespace):
        assert place.cluster.kubectl("get", "ns", namespace, "-o", label) == "restricted"


def test_job_finds_neither_the_databases_secret_nor_a_token(place: Place) -> None:
    place.apply(pool("curious", slots=2), job("first", pool="curious"))
    place.until("first", "Succeeded")
    url, token = _credentials(place, "curious")
    password = parse.urlsplit(url).password
    assert password
    # In halves, or it would find the words in its own command.
    words = [[one[:9], one[9:]] for one in (password, token)]
    given = f"WORDS = [a + b for a, b in {words!r}]\nWORDS.append('serviceaccount' + '/token')"
    place.apply(job("looks", f"python3 - <<'END'\n{given}\n{_ALL_THERE_IS}\nEND", pool="curious"))
    assert place.until("looks", "Succeeded")["outputTail"] == "looked\n"
    [pod] = place.pods("curious")
    assert "No such file" in place.asked(
        "exec", pod["metadata"]["name"], "-c", "runner", "--",
        "ls", "/var/run/secrets/kubernetes.io/serviceaccount",
    ).stderr  # fmt: skip


def test_job_is_told_what_the_pool_has_for_it_alone(place: Place) -> None:
    secret = ("create", "secret", "generic", "given", "--from-literal=KEY=for-commands")
    place.kubectl(*secret)
    place.apply(pool("gives", envFrom=[{"secretRef": {"name": "given"}}]))
    place.apply(job("reads", "echo $KEY; env | grep -c WORKRON_STORE || true", pool="gives"))
    assert place.until("reads", "Succeeded")["outputTail"] == "for-commands\n0\n"


def test_environment_of_a_job_is_not_read_by_one_beside_it(place: Place) -> None:
    place.apply(pool("shared", slots=2, replicas=1))
    hidden = [{"name": "HIDDEN", "value": "of-the-other"}]
    place.apply(job("other", waits_for("other"), env=hidden, pool="shared"))
    pod = place.pod_of("other")
    until(lambda: "test -e /tmp/other" in place.commands(pod), "its command runs")
    place.apply(job("looks-at", f"python3 - <<'END'\n{_SIBLING}\nEND", pool="shared"))
    tail = place.until("looks-at", "Succeeded")["outputTail"]
    place.let_go(pod, "other")
    assert tail == "looked\n"


def test_role_of_a_pool_can_do_nothing_but_its_verbs(place: Place, release: Release) -> None:
    for name in ("mine", "theirs"):
        place.apply(pool(name, replicas=1), job(f"held-{name}", waits_for(name), pool=name))
    pods = {name: place.pod_of(f"held-{name}") for name in ("mine", "theirs")}
    url, _ = _credentials(place, "mine")
    their_url, their_token = _credentials(place, "theirs")
    theirs = parse.urlsplit(their_url).username
    backend = release.sql(f"SELECT pid FROM pg_stat_activity WHERE usename = '{theirs}' LIMIT 1")
    enter = f"SELECT workron.register('{their_token}', 'me', gen_random_uuid(), 1)"
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
        (enter, "token"),
    ):
        said = _as_role(place, url, statement)
        assert re.search(refusal, said), f"{statement}: {said}"
    asked = f"SELECT query FROM pg_stat_activity WHERE usename = '{theirs}' LIMIT 1"
    assert _as_role(place, url, asked).strip() in {"<insufficient privilege>", ""}
    for name, pod in pods.items():
        place.let_go(pod, name)
        place.until(f"held-{name}", "Succeeded")


def test_accounts_may_do_what_the_list_says_and_nothing_more(place: Place) -> None:
    assert _rights(place) == _RIGHTS.read_text()


def test_person_of_one_namespace_reaches_nothing_in_another(place: Place) -> None:
    place.kubectl("create", "serviceaccount", "person")
    bind = ("--clusterrole=edit", f"--serviceaccount={place.namespace}:person")
    place.kubectl("create", "rolebinding", "person", *bind)
    who = f"--as=system:serviceaccount:{place.namespace}:person"
    made = json.dumps(job("of-a-person", "echo mine"))
    place.kubectl("create", who, "-f", "-", given=made)
    assert place.until("of-a-person", "Succeeded")["outputTail"] == "mine\n"
    for words in (("get", "wj"), ("get", "wpool"), ("create", "-f", "-"), ("get", "secrets")):
        refused = place.cluster.asked("-n", "default", *words, who, given=made)
        assert "orbidden" in refused.stderr, words
    forged = ("patch", "wj", "of-a-person", "--subresource=status", "--type=merge", "-p", "{}")
    assert "orbidden" in place.asked(*forged, who).stderr


def test_status_that_somebody_has_forged_is_put_right(place: Place) -> None:
    place.apply(job("forged", "exit 5", maxAttempts=1))
    place.until("forged", "Failed")
    forged = json.dumps({"status": {"phase": "Running", "exitCode": 0, "finishedAt": None}})
    place.kubectl("patch", "wj", "forged", "--subresource=status", "--type=merge", "-p", forged)
    # At the latest when all objects are compared again.
    assert place.until("forged", "Failed", seconds=400)["exitCode"] == 5


def _rights(place: Place) -> str:
    """List what each account may beside what everybody may."""
    lines: list[str] = []
    for namespace, account, looked_at in (
        (HOME, "workron-controller", HOME),
        (HOME, "workron-controller", place.namespace),
        (HOME, "workron-controller", "kube-system"),
        (HOME, "workron-database", HOME),
        (place.namespace, "default", place.namespace),
    ):
        who = f"--as=system:serviceaccount:{namespace}:{account}"
        said = place.cluster.kubectl("auth", "can-i", "--list", who, "-n", looked_at)
        rights = [" ".join(line.split()) for line in said.splitlines()[1:]]
        raw = zip(said.splitlines()[1:], rights, strict=True)
        kept = sorted(one for line, one in raw if not _EVERYBODYS.match(line))
        lines += [f"{account} in {looked_at}:", *(f"  {one}" for one in kept or ["nothing"])]
    return "\n".join(lines) + "\n"


def _credentials(place: Place, name: str) -> tuple[str, str]:
    """Give the URL and the token of a pool's agents."""
    found = place.cluster.read("-n", place.namespace, "secret", f"workron-pool-{name}")["data"]
    url, token = (base64.b64decode(found[key]).decode() for key in ("store", "token"))
    return url, token


def _as_role(place: Place, url: str, statement: str) -> str:
    inside = ("exec", "-n", HOME, "workron-database-0", "--", "psql", "--no-psqlrc", "-At", "-c")
    done = place.cluster.asked(*inside, statement, url)
    return done.stdout + done.stderr
