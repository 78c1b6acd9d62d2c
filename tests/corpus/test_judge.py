"""The judge finds what a cluster does wrong, with a fake kubectl."""

import subprocess

from tests.corpus import cases, judge, updates


class FakeCluster(judge.Cluster):
    """Accepts everything, and prints one message about edits."""

    def __init__(self, about_edits: str = "") -> None:
        super().__init__("kubeconfig", "namespace")
        self._about_edits = about_edits

    def ask(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        message = self._about_edits if arguments[0] == "replace" else ""
        return subprocess.CompletedProcess((*arguments, given), 0, stdout="", stderr=message)


def _refusal(name: str, words: str) -> str:
    return (
        'Error from server (Invalid): error when replacing "STDIN": Job.workron.dev '
        f'"{name}" is invalid: {words}\n'
    )


def test_judge_names_each_manifest_that_a_cluster_wrongly_accepts() -> None:
    named = [one.partition(":")[0] for one in judge.about_corpus(FakeCluster())]
    assert named == [f"refused/{case.name}" for case in cases.of("refused")]


def test_judge_names_each_edit_on_which_a_cluster_is_wrong() -> None:
    editable = [edit.name for edit in updates.updates() if edit.refused is None]
    refused = [edit.name for edit in updates.updates() if edit.refused]
    right = _refusal("job-timeout-added", "spec.timeout: Forbidden: timeout cannot be changed")
    other = _refusal("job-timeout-swapped", "spec.pool: Forbidden: pool cannot be changed")
    named = [one.split()[1].strip(":") for one in judge.about_updates(FakeCluster(right + other))]
    assert "job-timeout-added" not in named
    assert set(named) == {*editable, *refused} - {"job-timeout-added"}
