"""`workron get`: which runs and jobs it lists, in which form, and what --watch prints."""

import json
import pathlib
import re
import signal
import subprocess
import sys

import pytest
import yaml

from tests.cli.conftest import Call, Write
from workron.cli import yaml_writer
from workron.core.manifest import load


@pytest.fixture
def labelled(call: Call, write: Write, done: str) -> str:
    """The URL of a store with a workflow and two labelled jobs."""
    for name, labels in (("red", "{team: red, tier: '1'}"), ("blue", "{team: blue}")):
        manifest = write(name)
        manifest.write_text(
            manifest.read_text().replace(f"{name}}}", f"{name}, labels: {labels}}}")
        )
        assert call("submit", manifest, "--store", done).code == 0
    return done


def _names(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()[1:]]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), ["job/blue", "job/red", "workflow/flow"]),
        (("--state", "failed"), ["workflow/flow"]),
        (("--state", "Queued,Running"), ["job/blue", "job/red"]),
        (("--label", "team=red"), ["job/red"]),
        (("-l", "team"), ["job/blue", "job/red"]),
        (("--label", "team=red,tier=1"), ["job/red"]),
        (("--since", "1h"), ["job/blue", "job/red", "workflow/flow"]),
        (("flow", "--state", "Failed"), ["workflow/flow", "flow/bad"]),
    ],
)
def test_list_has_what_the_filters_accept(
    call: Call, labelled: str, options: tuple[str, ...], names: list[str]
) -> None:
    assert _names(call("get", *options, "--store", labelled).out) == names


def test_old_runs_are_left_out_when_only_recent_ones_are_wanted(call: Call, labelled: str) -> None:
    result = call("get", "--since", "1ms", "--store", labelled)
    assert (result.code, result.out) == (0, "")
    assert result.err == "no jobs or workflows match in namespace 'default'\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--state", "Broken"), "--state: 'broken' is not one of: Waiting, Queued, Running"),
        (("--label", "=red"), "--label: '=red' is not of the form KEY=VALUE,KEY,..."),
        (("--since", "noon"), "--since: 'noon' is not a duration"),
        (("flow", "--since", "1h"), "--label and --since select runs"),
        (("-w", "-o", "json"), "--watch prints a table; leave out -o json"),
        (("-o", "html"), "'html' is not one of: table, wide, json, yaml, name"),
    ],
)
def test_option_of_get_is_refused_with_the_right_form(
    call: Call, labelled: str, options: tuple[str, ...], words: str
) -> None:
    result = call("get", *options, "--store", labelled)
    assert result.code == 2
    assert words in " ".join(result.err.split())


def test_names_are_accepted_by_other_commands(call: Call, done: str) -> None:
    names = call("get", "flow", "-o", "name", "--store", done).out.splitlines()
    assert names == [
        "workflow/flow", "flow/one", "flow/many", "flow/many/0", "flow/many/1", "flow/bad",
    ]  # fmt: skip
    for name in names:
        assert call("describe", name, "--store", done).code == 0


def test_wide_list_has_worker_and_exit_code(call: Call, done: str) -> None:
    heading, *lines = call("get", "flow", "-o", "wide", "--store", done).out.splitlines()
    assert heading.split()[-6:] == ["ID", "POOL", "PRIORITY", "WORKER", "EXIT", "SUBMITTED"]
    assert re.search(r"default +0 +\S+ +9 +20\d\d-\S+Z$", lines[-1])


def test_yaml_and_json_have_the_same_objects(call: Call, labelled: str) -> None:
    given = call("get", "-o", "yaml", "--store", labelled).out
    items = json.loads(call("get", "-o", "json", "--store", labelled).out)["items"]
    assert yaml.safe_load(given) == {"items": items}
    by_name = {item["metadata"]["name"]: item for item in items}
    assert by_name["flow.one"]["status"]["result"] == {"a": [True, None]}
    assert "result" not in by_name["flow.bad"]["status"]


def test_objects_of_a_run_are_filtered_by_state(call: Call, done: str) -> None:
    given = call("get", "flow", "--state", "Succeeded", "-o", "json", "--store", done).out
    names = [item["metadata"]["name"] for item in json.loads(given)["items"]]
    assert names == ["flow.one", "flow.many.0", "flow.many.1"]


@pytest.mark.parametrize(
    "text",
    ["plain", "yes", "1e3", "0x10", "1:30", "a: b", "- x", "", " x", "two\nlines\n", "a\n  b",
     "tab\t", "null", "2026-01-01", "ü", "#c", "~", "trailing \nspace"],
)  # fmt: skip
def test_yaml_is_read_back_as_the_same_text(text: str) -> None:
    manifest = {
        "apiVersion": "workron.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "a", "annotations": {"x/y": text}},
        "spec": {"command": "true"},
    }
    source = load.ManifestSource("a", yaml_writer.dump(manifest).encode())
    [read] = load.load([source])
    assert read.resource.metadata.annotations == {"x/y": text}


def test_wait_and_get_print_allowed_failures(call: Call, write: Write, url: str) -> None:
    flow = write("flow", "name: lint, command: exit 1, maxAttempts: 1, allowFailure: true")
    assert call("run", flow, "--store", url).code == 0
    result = call("wait", "flow", "--store", url)
    assert (result.code, result.out) == (0, "workflow/flow Succeeded: 1 failure allowed: lint\n")
    assert call("get", "--store", url).out.endswith("1 failure allowed: lint\n")


def _watch(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "workron", "get", "-w", *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_watch_prints_changes_until_the_run_has_ended(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path
) -> None:
    call("submit", write("flow", "name: a, command: 'true'"), "--store", url)
    with _watch("flow", "--store", url) as child:
        assert child.stdout is not None
        first = [child.stdout.readline() for _ in range(3)]
        assert [line.split()[:2] for line in first] == [
            ["NAME", "STATUS"], ["workflow/flow", "Waiting"], ["flow/a", "Queued"],
        ]  # fmt: skip
        call("run", tmp_path / "flow.yaml", "--store", url)
        rest = child.stdout.read().splitlines()
        assert child.wait() == 0
    last = {line.split()[0]: line.split()[1] for line in rest}
    assert last == {"workflow/flow": "Succeeded", "flow/a": "Succeeded"}


def test_watch_shows_new_runs_until_it_is_interrupted(call: Call, write: Write, url: str) -> None:
    call("submit", write("one"), "--store", url)
    with _watch("--store", url) as child:
        assert child.stdout is not None
        assert [child.stdout.readline().split()[0] for _ in range(2)] == ["NAME", "job/one"]
        call("submit", write("two"), "--store", url)
        assert child.stdout.readline().split()[:2] == ["job/two", "Queued"]
        child.send_signal(signal.SIGINT)
        assert child.wait() == 130
