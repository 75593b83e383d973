"""Support bundles: the information for diagnosing a pipeline remotely.

Each request makes a collection, a folder of files. The newest few collections of a pipeline are kept, since they show its earlier
states.
"""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from airflow_pipelines.common.private_files import make_private_folder
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service.pipeline_files import PipelineFiles
from airflow_pipelines.service.records import PipelineRecord, later, rfc3339

KEPT: Final = 3
"""The number of collections of a pipeline that are kept."""
METADATA_VERSION: Final = 1
_SUMMARY: Final = "collection.json"


class BundlePart(StrEnum):
    """The possible parts of a collection, by the names of the request's parameters."""

    CIRCUIT_PROFILE = "circuit_profile"
    HEAP_PROFILE = "heap_profile"
    METRICS = "metrics"
    LOGS = "logs"
    STATS = "stats"
    PIPELINE_CONFIG = "pipeline_config"
    SYSTEM_CONFIG = "system_config"
    DATAFLOW_GRAPH = "dataflow_graph"
    PIPELINE_EVENTS = "pipeline_events"


FILES: Final[Mapping[BundlePart, tuple[str, ...]]] = {
    BundlePart.CIRCUIT_PROFILE: ("circuit_profile.zip", "circuit_profile.json"),
    BundlePart.HEAP_PROFILE: ("heap_profile.pb.gz",),
    BundlePart.METRICS: ("metrics.txt",),
    BundlePart.LOGS: ("logs.txt",),
    BundlePart.STATS: ("stats.json",),
    BundlePart.PIPELINE_CONFIG: ("pipeline_config.json",),
    BundlePart.SYSTEM_CONFIG: ("system_config.json",),
    BundlePart.DATAFLOW_GRAPH: ("dataflow_graph.json",),
    BundlePart.PIPELINE_EVENTS: ("pipeline_events.json",),
}
"""The files of each part."""

Source = Callable[[], bytes]
"""A function that returns the content of a file, or raises Problem or OSError."""


class SkippedPart(Exception):
    """The error of a part that is not available here at all. The message gives the reason."""


@dataclass(slots=True)
class Collection:
    """A collection of one time.

    :param directory: the name of its folder
    :param time: the time of the collection
    :param collected: the parts that it has
    :param skipped: the parts that were not requested or are not available, each with the reason
    :param failed: the parts that could not be collected, each with the reason
    """

    directory: str
    time: str
    collected: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """Return the collection for the metadata of a bundle."""
        return {
            "directory": self.directory,
            "time": self.time,
            "data_version": METADATA_VERSION,
            "collected": self.collected,
            "skipped": self.skipped,
            "failed": self.failed,
        }


class SupportBundles:
    """The collections of all pipelines of a store.

    :param files: the files of pipelines, which include the collections
    """

    def __init__(self, files: PipelineFiles) -> None:
        self._files = files

    def collect(self, record: PipelineRecord, wanted: Set[BundlePart], sources: Mapping[str, Source]) -> None:
        """Collect the available information about a pipeline, and remove the oldest collections.

        :param record: the pipeline
        :param wanted: the parts to collect
        :param sources: functions that return the content of each file
        """
        now = datetime.now(UTC)
        collection = Collection(now.strftime("%Y-%m-%dT%H-%M-%S.%fZ"), rfc3339(now) or "")
        folder = self._files.support(record) / collection.directory
        make_private_folder(folder)
        for part in BundlePart:
            if part not in wanted:
                collection.skipped[part] = "not asked for"
                continue
            try:
                for name in FILES[part]:
                    (folder / name).write_bytes(sources[name]())
            except SkippedPart as reason:
                collection.skipped[part] = str(reason)
            except Problem as problem:
                collection.failed[part] = f"{problem.code}: {problem.message}"
            except OSError as error:
                collection.failed[part] = f"{type(error).__name__}: {error.strerror or error}"
            else:
                collection.collected.append(part)
        # Written last: a collection without it was interrupted.
        (folder / _SUMMARY).write_text(json.dumps(collection.to_wire()))
        for old in self._folders(record)[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)

    def bundle(self, record: PipelineRecord, wanted: Set[BundlePart], limit: int) -> bytes:
        """Return the newest collections of a pipeline as a ZIP file.

        :param record: the pipeline
        :param wanted: the parts of each collection to include
        :param limit: the maximum number of collections in it
        """
        content = io.BytesIO()
        summaries: list[dict[str, Any]] = []
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
            for folder in self._folders(record)[:limit]:
                try:
                    summary = json.loads((folder / _SUMMARY).read_text())
                    parts = wanted & set(map(BundlePart, summary["collected"]))
                    contents = {name: (folder / name).read_bytes() for part in parts for name in FILES[part]}
                except (FileNotFoundError, ValueError):
                    # It was interrupted, or another request is making or removing it.
                    continue
                summaries.append(summary)
                for name, part_content in contents.items():
                    file.writestr(f"{folder.name}/{name}", part_content)
            metadata = _metadata(record, summaries)
            file.writestr("metadata.json", json.dumps(metadata, indent=1))
            file.writestr("metadata.txt", _describe_bundle(metadata))
        return content.getvalue()

    def _folders(self, record: PipelineRecord) -> list[Path]:
        """Return the folders of a pipeline's collections, the newest first."""
        try:
            return sorted((path for path in self._files.support(record).iterdir() if path.is_dir()), reverse=True)
        except FileNotFoundError:
            return []


def _metadata(record: PipelineRecord, collections: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "metadata_version": METADATA_VERSION,
        "requested_at": rfc3339(datetime.now(UTC)),
        "pipeline": {
            "id": str(record.id),
            "name": record.name,
            "status": record.deployment_status,
            "status_since": rfc3339(later(record.deployment_resources_status_since, record.deployment_runtime_status_since)),
            "desired_status": record.deployment_desired_status,
            "program_status": record.program_status.value,
            "storage_status": record.storage_status.value,
            "platform_version": record.platform_version,
            "version": record.version,
            "deployment_error": record.deployment_error,
        },
        "collections": collections,
    }


def _describe_bundle(metadata: Mapping[str, Any]) -> str:
    """Return the metadata as a text for people."""
    pipeline = metadata["pipeline"]
    lines = [
        f"Support bundle of pipeline {pipeline['name']} ({pipeline['id']})",
        f"Requested at {metadata['requested_at']}; its status is {pipeline['status']} since {pipeline['status_since']}",
    ]
    for collection in metadata["collections"]:
        lines += ["", f"{collection['directory']}: {', '.join(collection['collected']) or 'nothing'}"]
        for kind in ("skipped", "failed"):
            lines += [f"  {kind} {part}: {why}" for part, why in collection[kind].items()]
    return "\n".join(lines) + "\n"
