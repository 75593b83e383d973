"""Which tasks wait with the change of a pipeline, as Airflow's database says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import delete, insert
from uuid6 import uuid7

from tests.plugin.conftest import Client

DAG_RUN = 1_000_007
"""Its id. Runs of other tests of this process count from 1."""
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TABLES = {
    "hitl_detail", "xcom", "rendered_task_instance_fields", "task_instance", "dag_run", "dag_version", "dag", "dag_bundle",
}  # fmt: skip
SAID = {
    "pipeline": "shop", "pipeline_conn_id": "team", "programs": {"saved": {"hash": "1"}}, "change": {"plan": None}, "version": 4,
    "asked_at": 12,
}  # fmt: skip


def completed(model: Any, values: dict[str, Any]) -> dict[str, Any]:
    """A row of one of Airflow's tables, with something in each column that must have something."""
    empty: dict[type, Any] = {datetime: NOW, str: "", int: 0, bool: False, float: 0.0}
    wanted = (c for c in model.__table__.columns if not (c.nullable or c.default or c.server_default or c.autoincrement is True))
    missing = {column.name: column for column in wanted if column.name not in values}
    return {name: empty.get(column.type.python_type, "") for name, column in missing.items()} | values


class Waiting:
    """Task instances of one DAG run in Airflow's database, without the code of a DAG."""

    def __init__(self, session: Any) -> None:
        from airflow.models.dag import DagModel
        from airflow.models.dag_version import DagVersion
        from airflow.models.dagbundle import DagBundleModel
        from airflow.models.dagrun import DagRun

        self._session = session
        self.version = uuid7()
        values: dict[Any, dict[str, Any]] = {
            DagBundleModel: {"name": "b"},
            DagModel: {
                "dag_id": "d",
                "bundle_name": "b",
                "is_paused": False,
                "max_active_tasks": 1,
                "max_consecutive_failed_dag_runs": 0,
            },
            DagVersion: {"id": self.version, "dag_id": "d", "version_number": 1, "bundle_name": "b"},
            DagRun: {"id": DAG_RUN, "dag_id": "d", "run_id": "run/1", "run_type": "manual", "run_after": NOW, "state": "running"},
        }
        for model, row in values.items():
            session.execute(insert(model.__table__).values(**completed(model, row)))

    def task(self, task_id: str, *, state: str = "awaiting_input", map_index: int = -1) -> Any:
        """Add a task instance; returns its id."""
        from airflow.models.taskinstance import TaskInstance

        identity = uuid7()
        row = {"id": identity, "task_id": task_id, "dag_id": "d", "run_id": "run/1", "map_index": map_index, "state": state}
        values = completed(TaskInstance, row | {"dag_version_id": self.version, "pool_slots": 1})
        self._session.execute(insert(TaskInstance.__table__).values(**values))
        return identity

    def asks(self, identity: Any, *, answered: bool = False) -> None:
        """The task instance has asked people."""
        from airflow.models.hitl import HITLDetail

        self._session.execute(
            insert(HITLDetail).values(
                ti_id=identity, options=["Approve", "Reject"], subject="Pipeline shop", body="what changes", defaults=["Reject"],
                multiple=False, params={}, assignees=[{"id": "1", "name": "ann"}], created_at=NOW,
                responded_at=NOW if answered else None, params_input={},
            )
        )  # fmt: skip

    def says(self, task_id: str, value: Any, *, map_index: int = -1, key: str = "review") -> None:
        """The task instance has pushed an XCom."""
        from airflow.models.xcom import XComModel

        self._session.execute(
            insert(XComModel).values(
                dag_run_id=DAG_RUN, dag_id="d", run_id="run/1", task_id=task_id, map_index=map_index, key=key, value=value
            )
        )

    def rendered(self, task_id: str, **fields: Any) -> None:
        """The fields of the task instance were rendered to this."""
        from airflow.models.renderedtifields import RenderedTaskInstanceFields

        row = {"dag_id": "d", "run_id": "run/1", "task_id": task_id, "map_index": -1}
        self._session.execute(insert(RenderedTaskInstanceFields).values(**row, rendered_fields=fields))


@pytest.fixture
def waiting(airflow_tables: None) -> Iterator[Waiting]:
    from airflow.models.base import Base
    from airflow.utils.session import create_session

    with create_session() as session:
        yield Waiting(session)
    with create_session() as session:
        for table in reversed(Base.metadata.sorted_tables):
            if table.name in TABLES:
                session.execute(delete(table))


def commit(waiting: Waiting) -> None:
    waiting._session.commit()


def test_open_reviews_say_what_waits_and_where_it_is_answered(client: Client, waiting: Waiting) -> None:
    waiting.asks(waiting.task("gate"))
    waiting.says("gate", SAID)
    waiting.asks(waiting.task("mapped", map_index=3))
    waiting.says("mapped", SAID | {"pipeline_conn_id": None, "change": None}, map_index=3)
    waiting.task("mapped", state="success", map_index=2)
    waiting.says("mapped", SAID | {"pipeline": "other"}, map_index=2)
    # What is no review of a pipeline that waits.
    waiting.asks(waiting.task("answered"), answered=True)
    waiting.says("answered", SAID)
    waiting.asks(waiting.task("over", state="failed"))
    waiting.says("over", SAID)
    waiting.asks(waiting.task("of something else"))
    waiting.asks(waiting.task("odd"))
    waiting.says("odd", ["no", "object"])
    commit(waiting)
    reviews = client("VIEWER").get("reviews").json()["reviews"]
    assert [(each["task_id"], each["map_index"], each["connection"]) for each in reviews] == [
        ("gate", -1, "team"), ("mapped", 3, "airflow_pipelines_default"),
    ]  # fmt: skip
    gate, mapped = reviews
    assert gate == {
        "connection": "team",
        "pipeline": "shop",
        "programs": SAID["programs"],
        "change": SAID["change"],
        "version": 4,
        "asked_at": 12,
        "dag_id": "d",
        "run_id": "run/1",
        "task_id": "gate",
        "map_index": -1,
        "subject": "Pipeline shop",
        "body": "what changes",
        "options": ["Approve", "Reject"],
        "defaults": ["Reject"],
        "multiple": False,
        "params": {},
        "assigned_users": [{"id": "1", "name": "ann"}],
        "created_at": int(NOW.timestamp() * 1000),
        "page": "/dags/d/runs/run%2F1/tasks/gate/required_actions",
        "answer": "/api/v2/dags/d/dagRuns/run%2F1/taskInstances/gate/-1/hitlDetails",
    }
    assert mapped["page"].endswith("/tasks/mapped/mapped/3/required_actions")


def test_reviews_of_dags_that_a_person_may_not_see_are_not_there(
    client: Client, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.app import get_auth_manager

    waiting.asks(waiting.task("gate"))
    waiting.says("gate", SAID)
    commit(waiting)
    viewer = client("VIEWER")
    manager = get_auth_manager()
    asked: list[tuple[str, str, str | None]] = []

    def refuse(*, method: str, access_entity: Any, details: Any, user: Any) -> bool:
        asked.append((method, access_entity.value, details.id))
        return False

    with monkeypatch.context() as patched:
        patched.setattr(manager, "is_authorized_dag", refuse)
        assert viewer.get("reviews").json()["reviews"] == []
        assert viewer.get("task?dag_id=d&run_id=run/1&task_id=gate").status_code == 403
    assert asked == [("GET", "HITL_DETAIL", "d"), ("GET", "TASK_INSTANCE", "d")]
    assert len(viewer.get("reviews").json()["reviews"]) == 1


def test_a_task_instance_leads_to_its_pipeline(client: Client, waiting: Waiting) -> None:
    waiting.asks(waiting.task("gate"))
    waiting.says("gate", SAID)
    waiting.task("start", state="success")
    waiting.rendered("start", pipeline_name="shop", pipeline_conn_id="team")
    waiting.task("by default", state="success")
    waiting.rendered("by default", pipeline_name="shop", pipeline_conn_id=None)
    # Operators of other systems have pipelines, too.
    waiting.task("foreign", state="success")
    waiting.rendered("foreign", pipeline_name="dataflow", location="eu")
    waiting.task("early", state="queued")
    commit(waiting)
    viewer = client("VIEWER")

    def task(task_id: str, **more: str) -> dict[str, Any]:
        answer: dict[str, Any] = viewer.get("task", params={"dag_id": "d", "run_id": "run/1", "task_id": task_id} | more).json()
        return answer

    gate = task("gate", map_index="-1")
    assert (gate["pipeline"], gate["connection"], gate["review"]["task_id"]) == ("shop", "team", "gate")
    assert task("start") == {"pipeline": "shop", "connection": "team", "review": None}
    assert task("by default")["connection"] == "airflow_pipelines_default"
    nothing = {"pipeline": None, "connection": None, "review": None}
    assert [task("foreign"), task("early"), task("none"), task("gate", map_index="2")] == [nothing] * 4
    # Airflow leaves placeholders as they are where it has nothing to put there.
    assert task("start", map_index="{MAP_INDEX}")["pipeline"] == "shop"
    assert viewer.get("task", params={"dag_id": "d", "task_id": "start"}).json() == nothing
    assert viewer.get("task", params={"dag_id": "d"}).json()["error_code"] == "InvalidParam"
