"""A disk without room: what is saved stays, and the pipeline says what it needs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from airflow_pipelines import Pipeline, PipelineAPIError, PipelineClient, PipelineFailedError
from airflow_pipelines.service.control_plane import ControlPlane
from tests.service.waiting import status, until

pytestmark = pytest.mark.core


class SmallDisk:
    """A file system of its own with room for little; for a user who may not mount one, a folder that can be made read-only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", str(folder)]
        self.mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
        self.refusal = "No space left" if self.mounted else "Permission denied"

    def fill(self) -> None:
        if not self.mounted:
            self._allow(0o500)
            return
        with (self.folder / "ballast").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"0" * 4096)

    def make_room(self) -> None:
        if self.mounted:
            (self.folder / "ballast").unlink()
        else:
            self._allow(0o700)

    def remove(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def _allow(self, mode: int) -> None:
        for folder in (self.folder, *(path for path in self.folder.rglob("*") if path.is_dir())):
            folder.chmod(mode)


@pytest.fixture
def disk(service_app: FastAPI, rest: TestClient, name: str) -> Iterator[SmallDisk]:
    """The storage of this test's pipeline, which is to be created before it is started."""
    assert rest.post("/v0/pipelines", json={"name": name, "program_code": "create table t(id int);"}).status_code == 201
    control_plane: ControlPlane = service_app.state.control_plane
    disk = SmallDisk(control_plane.files.storage(control_plane.store.require(name)))
    yield disk
    control_plane.stop(name, force=True)
    until(lambda: control_plane.pipeline(name).fully_stopped)
    disk.remove()


PROGRAM = "create table t(id bigint not null primary key, v varchar) with ('materialized' = 'true');"


@pytest.mark.core(slow_because="a host comes up, and its stop waits for a checkpoint")
def test_a_graceful_stop_on_a_full_disk_is_a_forced_one_with_the_reason(
    rest: TestClient,
    service_app: FastAPI,
    name: str,
    disk: SmallDisk,
) -> None:
    url = f"/v0/pipelines/{name}"
    assert rest.patch(url, json={"program_code": PROGRAM}).status_code == 200
    run_from(rest, name)
    insert(rest, name, 1)
    rest.post(f"{url}/checkpoint")
    until(lambda: rest.get(f"{url}/checkpoint_status").json()["success"] == 0)
    # From now on these rows are in memory only: the mode is none.
    insert(rest, name, 2)
    disk.fill()

    before = status(rest, name)["storage_status_details"]
    pipeline = Pipeline.get(name, PipelineClient(app=service_app))
    with pytest.raises(PipelineAPIError, match=r"are processed, but the checkpoint .* could not be written: .*") as failed:
        pipeline.input_json("t", {"id": 3, "v": "x"}, checkpoint=True, timeout_s=30)
    assert failed.value.error_code == "CheckpointFailed"
    assert disk.refusal in failed.value.message
    assert [row["id"] for row in pipeline.query("select id from t order by id")] == [1, 2, 3], "it goes on"

    stop_without_checkpoint(pipeline, disk, "What came after the newest checkpoint is lost")
    seen = status(rest, name)
    assert (seen["deployment_status"], seen["deployment_desired_status"]) == ("Stopped", "Stopped")
    assert seen["storage_status_details"] == before
    assert not list(disk.folder.rglob("*.tmp"))

    disk.make_room()
    run_from(rest, name)
    assert [row["id"] for row in pipeline.query("select id from t order by id")] == [1]


@pytest.mark.rest
def test_what_is_in_the_journal_outlasts_a_stop_without_its_checkpoint(
    rest: TestClient,
    service_app: FastAPI,
    name: str,
    disk: SmallDisk,
) -> None:
    fields = {"program_code": PROGRAM, "runtime_config": {"fault_tolerance": "exactly_once"}}
    assert rest.patch(f"/v0/pipelines/{name}", json=fields).status_code == 200
    run_from(rest, name)
    insert(rest, name, 1)
    disk.fill()
    pipeline = Pipeline.get(name, PipelineClient(app=service_app))
    stop_without_checkpoint(pipeline, disk, "Nothing is lost: all steps are in the journal")
    disk.make_room()
    run_from(rest, name)
    assert [row["id"] for row in pipeline.query("select id from t order by id")] == [1]


def stop_without_checkpoint(pipeline: Pipeline, disk: SmallDisk, what_is_lost: str) -> None:
    with pytest.raises(PipelineFailedError, match=r"stopped as by force, because its last checkpoint") as caught:
        pipeline.stop(force=False, timeout_s=30)
    error = caught.value.deployment_error
    assert error is not None
    assert error["error_code"] == "SuspendError"
    assert error["details"]["cause"]["error_code"] in {"RuntimeError.StorageFull", "RuntimeError.StorageReadOnly"}
    assert disk.refusal in error["message"]
    assert what_is_lost in error["message"]
    assert pipeline.errors() == [error]


def run_from(rest: TestClient, name: str) -> None:
    assert rest.post(f"/v0/pipelines/{name}/start").status_code == 202
    until(lambda: status(rest, name)["deployment_status"] == "Running" or status(rest, name)["deployment_error"])
    assert status(rest, name)["deployment_error"] is None


def insert(rest: TestClient, name: str, number: int) -> None:
    url = f"/v0/pipelines/{name}"
    row: dict[str, Any] = {"id": number, "v": "x" * 2000}
    token = rest.post(f"{url}/ingress/t?format=json&update_format=raw", json=row).json()["token"]
    until(lambda: rest.get(f"{url}/completion_status", params={"token": token}).json()["status"] == "complete")
