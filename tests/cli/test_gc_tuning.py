"""Garbage collection is paused while manifests are read, and rare while jobs run."""

import gc
import pathlib
from collections.abc import Callable

import pytest

from workron.cli import gc_tuning, manifest_files
from workron.core import errors
from workron.core.manifest import load

_JOB = "apiVersion: workron.dev/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {command: x}\n"


@pytest.fixture
def enabled_at_reads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record at each read whether garbage collection is enabled."""
    seen: list[bool] = []
    real: Callable[..., list[load.Manifest]] = load.load

    def record(sources: list[load.ManifestSource]) -> list[load.Manifest]:
        seen.append(gc.isenabled())
        return real(sources)

    monkeypatch.setattr(load, "load", record)
    return seen


def test_collection_is_paused_when_files_are_read(
    tmp_path: pathlib.Path, enabled_at_reads: list[bool]
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(_JOB)
    assert len(manifest_files.request([str(path)]).plans) == 1
    assert enabled_at_reads == [False]
    assert gc.isenabled()


def test_collection_is_enabled_again_when_a_file_is_refused(
    tmp_path: pathlib.Path, enabled_at_reads: list[bool]
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("kind: Job\n")
    with pytest.raises(errors.ManifestError):
        manifest_files.request([str(path)])
    assert enabled_at_reads == [False]
    assert gc.isenabled()


def test_collection_stays_disabled_when_it_was_disabled_before() -> None:
    gc.disable()
    try:
        with gc_tuning.paused_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_objects_that_were_read_are_excluded_from_later_collections() -> None:
    with gc_tuning.paused_collection():
        pass
    assert gc.get_freeze_count() > 0


def test_collection_is_rare_inside_the_block_only() -> None:
    usual = gc.get_threshold()
    with gc_tuning.rare_collection():
        assert gc.get_threshold()[0] > 10 * usual[0]
    assert gc.get_threshold() == usual
