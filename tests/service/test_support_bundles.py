"""Support bundles: what is collected, what is kept, and what is said of the rest."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.service.pipeline_files import PipelineFiles
from airflow_pipelines.service.records import rfc3339
from airflow_pipelines.service.support_bundles import FILES, KEPT, BundlePart, SkippedPart, SupportBundles
from tests.service import records as given

EVERYTHING = set(BundlePart)


def source(content: bytes | Exception) -> Any:
    def give() -> bytes:
        if isinstance(content, Exception):
            raise content
        return content

    return give


def sources(**others: Exception) -> dict[str, Any]:
    """A source for each file; ``others`` are those of parts that cannot be had."""
    return {name: source(others.get(part, name.encode())) for part in BundlePart for name in FILES[part]}


def opened(bundle: bytes) -> tuple[dict[str, Any], zipfile.ZipFile]:
    file = zipfile.ZipFile(io.BytesIO(bundle))
    return json.loads(file.read("metadata.json")), file


@pytest.fixture
def files(tmp_path: Path) -> PipelineFiles:
    return PipelineFiles(Settings.load(tmp_path))


def test_what_cannot_be_had_is_named_with_its_reason(files: PipelineFiles) -> None:
    bundles, record = SupportBundles(files), given.stopped()
    away = sources(
        heap_profile=SkippedPart("there is none"),
        stats=Problem(ErrorCode.PIPELINE_INTERACTION_NOT_DEPLOYED, "it has no host"),
        logs=FileNotFoundError(2, "No such file or directory"),
    )
    bundles.collect(record, EVERYTHING - {BundlePart.METRICS}, away)
    metadata, file = opened(bundles.bundle(record, EVERYTHING, KEPT))
    (collection,) = metadata["collections"]
    assert collection["skipped"] == {"heap_profile": "there is none", "metrics": "not asked for"}
    assert collection["failed"] == {
        "logs": "FileNotFoundError: No such file or directory",
        "stats": "PipelineInteractionNotDeployed: it has no host",
    }
    folder = collection["directory"]
    names = {name for part in collection["collected"] for name in FILES[BundlePart(part)]}
    assert set(file.namelist()) == {"metadata.json", "metadata.txt", *(f"{folder}/{name}" for name in names)}
    assert file.read(f"{folder}/circuit_profile.zip") == b"circuit_profile.zip"
    assert "failed stats: PipelineInteractionNotDeployed" in file.read("metadata.txt").decode()
    assert (metadata["pipeline"]["name"], metadata["pipeline"]["status"]) == (record.name, "Stopped")


def test_the_newest_collections_are_kept_until_the_pipeline_is_deleted(files: PipelineFiles) -> None:
    bundles, record = SupportBundles(files), given.stopped()
    for _ in range(KEPT + 2):
        bundles.collect(record, {BundlePart.LOGS, BundlePart.STATS}, sources())
    # One that was broken off is passed over.
    (files.support(record) / "9999").mkdir()
    metadata, _ = opened(bundles.bundle(record, EVERYTHING, KEPT + 1))
    times = [collection["time"] for collection in metadata["collections"]]
    assert times == sorted(times, reverse=True)
    assert len(times) == KEPT
    _, file = opened(bundles.bundle(record, {BundlePart.STATS}, 2))
    assert [name.partition("/")[2] for name in file.namelist() if "/" in name] == ["stats.json"]
    files.forget(record)
    assert not files.support(record).exists()
    assert opened(bundles.bundle(record, EVERYTHING, KEPT))[0]["collections"] == []


def test_a_collection_that_is_removed_while_a_bundle_is_made_is_passed_over(
    files: PipelineFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles, record = SupportBundles(files), given.stopped()
    for _ in range(2):
        bundles.collect(record, EVERYTHING, sources())
    read_bytes = Path.read_bytes

    def removed(path: Path) -> bytes:
        if path.parent == sorted(files.support(record).iterdir())[0]:
            shutil.rmtree(path.parent)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", removed)
    metadata, file = opened(bundles.bundle(record, EVERYTHING, KEPT))
    (collection,) = metadata["collections"]
    assert {name.split("/")[0] for name in file.namelist() if "/" in name} == {collection["directory"]}


def test_the_status_dates_from_its_newest_part(files: PipelineFiles) -> None:
    record = given.at(RuntimeStatus.PAUSED)
    newer = replace(record, deployment_runtime_status_since=given.LATER)
    bundles = SupportBundles(files)
    for each, since in ((record, given.NOW), (newer, given.LATER)):
        metadata, _ = opened(bundles.bundle(each, EVERYTHING, KEPT))
        assert metadata["pipeline"]["status_since"] == rfc3339(since)
