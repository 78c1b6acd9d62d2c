"""The repository keeps to the vocabulary of docs/reference/glossary.md.

`python -m tests.packaging.words -v PATH` lists what breaks a rule and what to write instead.
"""

import pathlib

import pytest

from tests.packaging import words

_PRODUCT = ("workron/", "controller/", "worker_image/")


@pytest.mark.parametrize("path", list(words.files()), ids=str)
def test_file_has_no_banned_word_or_opening(path: pathlib.Path) -> None:
    assert [str(one) for one in words.offenders(path)] == []


def test_class_name_is_used_once_in_the_product() -> None:
    assert [name for name, paths in words.classes(_PRODUCT).items() if len(paths) > 1] == []


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", "told_jobs = 1\n"),
        (".py", "class ToldJob: pass\n"),
        (".py", "# Nobody reads it.\n"),
        (".py", "# Who ends is\n# removed.\n"),
        (".py", 'def f():\n    """Return it.\n\n    What is left is dropped.\n    """\n'),
        (".py", 'x = "There is a job."\n'),
        (".sql", "-- Of all rows only the newest, by id, is kept\n"),
        (".yaml", "replicas: 1  # Who reads this knows.\n"),
        (".md", "- What ends is\n  removed.\n"),
        (".md", "A worker is no pod.\n"),
    ],
)
def test_check_finds_an_offender_in(suffix: str, text: str) -> None:
    assert len(words.check(text, f"any{suffix}")) == 1


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", "position = stream.tell()\n"),
        (".py", "heartbeat = 1  # the worker's heartbeat\n"),
        (".md", "## What it costs\n\nWhat does it cost? It is no longer used.\n"),
        (".md", "```\nWho reads this.\n```\n"),
        (".sql", "-- Claims ready jobs, oldest first.\n"),
    ],
)
def test_check_accepts(suffix: str, text: str) -> None:
    assert words.check(text, f"any{suffix}") == []
