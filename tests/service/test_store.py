"""The store: compare-and-swap, events, and databases that do not work."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_pipelines.common.database import open_database
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.lifecycle import incarnation, requests
from airflow_pipelines.service.lifecycle.requests import StartRequest
from airflow_pipelines.service.store import EVENTS_KEPT, Conflict, Store
from tests.service import records as given
from tests.service.records import NOW
from tests.tiers import examples


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(open_database(f"sqlite:///{tmp_path / 'store.sqlite'}"))
    store.create_tables()
    return store


def test_records_come_back_as_they_were(store: Store) -> None:
    record = replace(given.running(), tags=("a", "b"), deployment_error={"message": "m"})
    store.create(record)
    assert store.find(record.name) == record == store.get(record.id)
    assert store.find("other") is None
    with pytest.raises(Problem, match="no pipeline named 'other'"):
        store.require("other")


def test_a_name_is_taken_once(store: Store) -> None:
    store.create(given.pending("p"))
    store.create(given.pending("q"))
    for taken in (lambda: store.create(given.pending("p")), lambda: rename(store, "q", "p")):
        with pytest.raises(Problem) as refused:
            taken()
        assert (http_status(refused.value.code), refused.value.code) == (409, "DuplicateName")


def rename(store: Store, old: str, new: str) -> None:
    record = store.require(old)
    store.commit(record, [replace(record, name=new)])


def test_of_two_changes_of_the_same_state_one_wins(store: Store) -> None:
    record = given.stopped()
    store.create(record)
    store.commit(record, [requests.start(record, StartRequest(), NOW)])
    with pytest.raises(Conflict):
        store.commit(record, [replace(record, description="late")])
    with pytest.raises(Conflict):
        store.delete(record)


@pytest.mark.rest
def test_many_writers_lose_nothing(store: Store) -> None:
    store.create(given.stopped())

    def bump(_: int) -> None:
        while True:
            record = store.require("p")
            try:
                store.commit(record, [replace(record, version=record.version + 1)])
            except Conflict:
                continue
            return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bump, range(80)))
    assert store.require("p").version == 81


def test_every_step_of_a_commit_is_one_event(store: Store) -> None:
    record = given.starting()
    store.create(record)
    used = incarnation.use_storage(record)
    store.commit(record, [used, incarnation.provision(used, given.DEPLOYMENT, given.HOST, {}, NOW)])
    seen = [(event.deployment_resources_status, event.storage_status) for event in reversed(store.events(record.id))]
    assert seen == [("Stopped", "Cleared"), ("Stopped", "InUse"), ("Provisioning", "InUse")]


def test_only_the_newest_events_are_kept(store: Store) -> None:
    record = given.stopped()
    store.create(record)
    steps = [replace(record, deployment_error={"message": str(n)} if n % 2 else None) for n in range(1, EVENTS_KEPT + 20)]
    store.commit(record, steps)
    events = store.events(record.id)
    assert len(events) == EVENTS_KEPT
    assert events[0].deployment_error == {"message": str(EVENTS_KEPT + 19)}


def test_deleting_takes_the_events_along(store: Store) -> None:
    record = given.pending()
    store.create(record)
    store.delete(record)
    assert store.events(record.id) == []


@pytest.mark.rest
def test_two_processes_may_create_the_tables_at_once(tmp_path: Path) -> None:
    for attempt in range(examples("STORE_RACES", 40)):
        url = f"sqlite:///{tmp_path / f'store-{attempt}.sqlite'}"
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda _, url=url: Store(open_database(url)).create_tables(), range(6)))


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes(b"this is no database at all, not even nearly" * 100)
    with pytest.raises(Problem) as refused:
        ControlPlane(Settings(home=tmp_path, database_url=f"sqlite:///{path}", storage=tmp_path / "storage"))
    assert (http_status(refused.value.code), refused.value.code) == (503, "StoreUnavailable")
    assert str(path) in refused.value.message
    assert "damaged" in refused.value.message


def test_a_store_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = tmp_path / "file" / "home"
    with pytest.raises(Problem) as refused:
        ControlPlane(Settings.load(home))
    assert refused.value.code == "StoreUnavailable"
    assert str(home) in refused.value.message


def test_a_locked_database_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.common.database.BUSY_TIMEOUT_MS", 50)
    control_plane = ControlPlane(Settings.load(tmp_path))
    blocker = sqlite3.connect(tmp_path / "store.sqlite")
    blocker.execute("BEGIN IMMEDIATE")
    from starlette.testclient import TestClient

    from airflow_pipelines.service.app import create_app

    blocker.rollback()
    app = create_app(Settings.load(tmp_path))
    blocker.execute("BEGIN IMMEDIATE")
    answer = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False).post(
        "/v0/pipelines", json={"name": "p", "program_code": ""}
    )
    blocker.close()
    assert (answer.status_code, answer.json()["error_code"]) == (503, "LockTookTooLong")
    assert "INSERT" not in answer.text
    app.state.control_plane.close()
    control_plane.close()


def test_passwords_stay_out_of_messages() -> None:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import OperationalError

    from airflow_pipelines.service.errors import store_unusable

    error = OperationalError("INSERT INTO hosts (token) VALUES ('t0ken')", {"token": "t0ken"}, Exception("connection refused"))
    body = str(store_unusable(error, make_url("postgresql+psycopg://me:s3cret@db/x")).body())
    assert "s3cret" not in body
    assert "t0ken" not in body
    assert "connection refused" in body


def test_a_store_of_an_earlier_release_gets_the_columns_that_came_later(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    store = Store(open_database(f"sqlite:///{path}"))
    store.create_tables()
    record = given.pending()
    store.create(record)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE pipelines DROP COLUMN udf_python")
        connection.execute("ALTER TABLE pipelines DROP COLUMN stream_files")
        connection.execute("ALTER TABLE pipelines DROP COLUMN stream_arguments")
    again = Store(open_database(f"sqlite:///{path}"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: again.create_tables(), range(4)))
    assert again.find(record.name) == record
    files = (SourceFile("z.py", "import a"), SourceFile("a.py", ""))
    changed = replace(record, udf_python="def f(x): return x", stream_files=files, stream_arguments=("--x", ""))
    again.commit(record, [changed])
    assert again.require(record.name).source == changed.source
