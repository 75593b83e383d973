"""Tasks that Airflow runs in the process of ``airflow dags test`` or ``dag.test()``, where no scheduler and no worker ends them."""

from __future__ import annotations

import signal
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowTaskTerminated, AirflowTaskTimeout, TaskAwaitingInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from airflow.providers.standard.operators.hitl import HITLOperator
    from airflow.sdk import Context

_POLL_S: Final = 1.0


def end_task_of_dag_test() -> None:
    """End the task if it runs in ``dag.test()``; a worker's task is ended by its supervisor. Call it from ``on_kill``.

    Airflow's handler of SIGTERM returns afterwards, so a run in this process would continue as if nothing had happened. If
    ``execution_timeout`` ended the task, Airflow raises the timeout again, and nothing more is needed.

    :raises AirflowTaskTerminated: if it is such a task, and was asked to end; the next SIGTERM ends the process
    """
    if not _is_in_dag_test() or isinstance(sys.exception(), AirflowTaskTimeout):
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise AirflowTaskTerminated("The run was asked to end")


def await_answer(context: Context, operator: HITLOperator, wait: TaskAwaitingInput) -> Any:
    """Wait for the answer of a person: in a deferred task or, in ``dag.test()``, here.

    :param context: the task's context
    :param operator: the operator that made the request
    :param wait: the exception that it raised, with the arguments of ``execute_complete``
    :returns: the operator's result for the answer
    :raises TaskAwaitingInput: if the task runs in a worker
    """
    supervisor = _get_supervisor()
    if supervisor is None:
        raise wait
    operator.log.info("Waiting for an answer, through an API server over the same database, for %s", wait.timeout or "ever")
    event = _answer(supervisor.client.hitl, context["ti"].id, operator, wait.timeout)
    return operator.execute_complete(context, event, **(wait.kwargs or {}))


def _get_supervisor() -> Any:
    """Return the supervisor of a task that runs in this process, or None for a task of a worker.

    These modules are internal to Airflow and may change: if they are missing, it returns None.
    """
    try:
        from airflow.sdk.execution_time import task_runner
        from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms
    except ImportError:
        return None
    comms = getattr(task_runner, "SUPERVISOR_COMMS", None)
    return comms.supervisor if isinstance(comms, InProcessSupervisorComms) else None


def _is_in_dag_test() -> bool:
    """Return True if the task runs in this process, also while it makes a request, for which Airflow takes its supervisor away."""
    try:
        from airflow.sdk.execution_time.supervisor import InProcessTestSupervisor
    except ImportError:
        return False
    start = getattr(InProcessTestSupervisor.start, "__func__", None)
    code = getattr(start, "__code__", None)
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def _answer(requests: Any, ti_id: Any, operator: HITLOperator, timeout: timedelta | None) -> dict[str, Any]:
    """Wait for the answer, and return it in Airflow's form.

    :param requests: Airflow's client for requests to people
    :param ti_id: the id of the task instance
    :param operator: the operator that made the request
    :param timeout: the maximum time to wait
    """
    deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
    while True:
        # As in the scheduler, an answer that exists when the time is up still counts.
        is_over = deadline is not None and time.monotonic() >= deadline
        response = requests.get_detail_response(ti_id)
        if response.response_received and response.chosen_options:
            return _make_event(response, timed_out=False)
        if is_over:
            break
        time.sleep(_POLL_S if deadline is None else max(0.0, min(_POLL_S, deadline - time.monotonic())))
    if operator.defaults is None:
        return {"error": f"Nobody has answered within {timeout}", "error_type": "timeout"}
    chosen = {"chosen_options": list(operator.defaults), "params_input": operator.params.dump()}
    return _make_event(requests.update_response(ti_id=ti_id, **chosen), timed_out=True)


def _make_event(response: Any, *, timed_out: bool) -> dict[str, Any]:
    user: Any = None if timed_out else response.responded_by_user
    person: Mapping[str, str] | None = None if user is None else {"id": user.id, "name": user.name}
    return {
        "chosen_options": list(response.chosen_options or ()),
        "params_input": dict(response.params_input or {}),
        "responded_at": response.responded_at,
        "responded_by_user": person,
        "timedout": timed_out,
    }
