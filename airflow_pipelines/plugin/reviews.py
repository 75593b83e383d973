"""The tasks of Airflow that wait for a person to decide about the change of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.models.dag import DagModel
from airflow.models.hitl import HITLDetail
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.state import TaskInstanceState
from sqlalchemy import and_, select

from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID
from airflow_pipelines.operators.request import REVIEW_KEY
from airflow_pipelines.plugin.paths import request_answer, request_page

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from sqlalchemy.orm import Session

MOST: Final = 1000


def open_reviews(session: Session, user: BaseUser) -> list[dict[str, Any]]:
    """Return the reviews that nobody has answered yet, of the DAGs whose requests a person may see, oldest first.

    :param session: a session of Airflow's database
    :param user: the person
    """
    # Few requests are pending, and mostly none, so permissions are checked for their DAGs only, not for all DAGs.
    return list(_reviews(session, _waiting().order_by(HITLDetail.created_at).limit(MOST), user))


def pipeline_of_task(session: Session, user: BaseUser, dag_id: str, run_id: str, task_id: str, map_index: int) -> dict[str, Any]:
    """Return the pipeline of a task instance, and the review for which it waits.

    :param session: a session of Airflow's database
    :param user: the person who asks, who may see task instances of the DAG
    :param dag_id: the DAG
    :param run_id: its run
    :param task_id: the task
    :param map_index: the index of a mapped task instance, else -1
    :returns: ``pipeline`` (None for a task of no pipeline), ``connection`` and ``review``
    """
    place = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    waiting = _waiting().where(*(getattr(TaskInstance, column) == value for column, value in place.items()))
    for review in _reviews(session, waiting, user):
        return {"pipeline": review["pipeline"], "connection": review["connection"], "review": review}
    fields = session.scalar(select(RenderedTaskInstanceFields.rendered_fields).filter_by(**place)) or {}
    # Operators of other packages may have a field with one of the two names, too.
    name = fields.get("pipeline_name") if "pipeline_conn_id" in fields else None
    if not isinstance(name, str) or not name:
        return {"pipeline": None, "connection": None, "review": None}
    return {"pipeline": name, "connection": fields["pipeline_conn_id"] or DEFAULT_CONN_ID, "review": None}


def _waiting() -> Any:
    """Return the query for pending requests, with the XCom in which their task describes them."""
    said = and_(
        XComModel.dag_id == TaskInstance.dag_id,
        XComModel.run_id == TaskInstance.run_id,
        XComModel.task_id == TaskInstance.task_id,
        XComModel.map_index == TaskInstance.map_index,
        XComModel.key == REVIEW_KEY,
    )
    query = (
        select(HITLDetail, TaskInstance, XComModel).join(TaskInstance, HITLDetail.ti_id == TaskInstance.id).join(XComModel, said)
    )
    return query.where(HITLDetail.responded_at.is_(None), TaskInstance.state == TaskInstanceState.AWAITING_INPUT)


def _reviews(session: Session, query: Any, user: BaseUser) -> Iterator[dict[str, Any]]:
    may_see: dict[str, bool] = {}
    for request, task_instance, xcom in session.execute(query):
        said = XComModel.deserialize_value(xcom)
        if not isinstance(said, dict) or not isinstance(said.get("pipeline"), str):
            continue
        dag_id = task_instance.dag_id
        if dag_id not in may_see:
            may_see[dag_id] = _may_see(session, user, dag_id)
        if may_see[dag_id]:
            yield _review(request, task_instance, said)


def _may_see(session: Session, user: BaseUser, dag_id: str) -> bool:
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id, session=session))
    allowed: bool = get_auth_manager().is_authorized_dag(
        method="GET", access_entity=DagAccessEntity.HITL_DETAIL, details=details, user=user
    )
    return allowed


def _review(request: HITLDetail, task_instance: TaskInstance, said: dict[str, Any]) -> dict[str, Any]:
    created_at = int(request.created_at.timestamp() * 1000)
    return {
        "connection": said.get("pipeline_conn_id") or DEFAULT_CONN_ID,
        "pipeline": said["pipeline"],
        "programs": said.get("programs") or {},
        "change": said.get("change"),
        "version": said.get("version"),
        "dag_id": task_instance.dag_id,
        "run_id": task_instance.run_id,
        "task_id": task_instance.task_id,
        "map_index": task_instance.map_index,
        "subject": request.subject,
        "body": request.body,
        "options": request.options,
        "defaults": request.defaults,
        "multiple": bool(request.multiple),
        "params": request.params,
        "assigned_users": request.assigned_users,
        "created_at": created_at,
        # A cleared task asks again with the request that Airflow has stored.
        "asked_at": said.get("asked_at") or created_at,
        "page": request_page(task_instance),
        "answer": request_answer(task_instance),
    }
