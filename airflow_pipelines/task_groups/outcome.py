"""The outcome of a group of tasks that ends with a teardown: failures that Airflow ignores when it judges the DAG run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, TriggerRule
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context


class GroupOutcomeOperator(BaseOperator):
    """The operator that fails the DAG run for failures that Airflow ignores if teardowns come last.

    Airflow determines the state of a run from its last tasks. If a person marks a run as failed while a teardown is due, Airflow
    does not keep that state: running tasks fail, later tasks are skipped, and a run whose last tasks are skipped is a success. So
    this task, which is a teardown itself and never skipped, looks for failed tasks after which everything was skipped, and for
    teardowns that have failed. It runs in a worker for a moment and asks no pipeline.

    :param tear_downs: the ids of the teardowns whose failure counts
    """

    ui_color = "#e8e8e8"

    def __init__(self, *, tear_downs: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tear_downs = tear_downs

    def put_behind(self, tear_down: BaseOperator, *, setups: Iterable[BaseOperator]) -> None:
        """Put this task behind a teardown.

        Airflow counts a task as one of the last if only teardowns that it ignores come directly after it. It does not ignore this
        one, so this one comes after no other task.

        :param tear_down: the last teardown
        :param setups: the setups, with which this task is cleared
        """
        tear_down >> self.as_teardown(setups=setups, on_failure_fail_dagrun=True)
        # A teardown is skipped together with its setups, which are skipped if the run is marked as failed before they start.
        self.trigger_rule = TriggerRule.ALL_DONE

    def execute(self, context: Context) -> None:
        """Check the states of the tasks.

        :raises AirflowFailException: if the run has failed; the message has the tasks that did
        """
        ti: Any = context["ti"]
        states: dict[str, set[str]] = {}
        for task in ti.get_task_breadcrumbs(ti.dag_id, ti.run_id):
            # The instances of a mapped task share its name.
            states.setdefault(task["task_id"], set()).add(str(task["state"]))
        before = sorted(self.get_flat_relatives(upstream=True), key=lambda task: str(task.task_id))
        if failed := [task.task_id for task in before if self._has_failed_the_run(task, states)]:
            raise AirflowFailException(f"The DAG run has failed because of {', '.join(failed)}; the logs of these tasks say why")

    def _has_failed_the_run(self, task: Any, states: dict[str, set[str]]) -> bool:
        if "failed" not in states.get(task.task_id, ()):
            return False
        if task.is_teardown:
            return task.task_id in self.tear_downs
        after = [later.task_id for later in task.get_flat_relatives(upstream=False) if not later.is_teardown]
        return bool(after) and all(states.get(name) == {"skipped"} for name in after)
