"""The outcome of a group of tasks that ends with a tear-down: failures that Airflow leaves out when it judges the DAG run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, TriggerRule
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context


class GroupOutcomeOperator(BaseOperator):
    """Fails the DAG run for failures that Airflow does not count where tear-downs come last.

    Airflow judges a run by its last tasks. While a tear-down is due it does not even keep what a person says who marks the run as
    failed: what runs has failed then, what comes after it is skipped, and a run whose last tasks are skipped is a success. So this
    task, which is a tear-down itself and never skipped, looks for failed tasks after which everything was skipped, and for
    tear-downs that have failed. It runs in a worker for a moment and asks no pipeline.

    :param tear_downs: the ids of the tear-downs whose failure counts
    """

    ui_color = "#e8e8e8"

    def __init__(self, *, tear_downs: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tear_downs = tear_downs

    def put_behind(self, tear_down: BaseOperator, *, setups: Iterable[BaseOperator]) -> None:
        """Have this task come after a tear-down.

        Airflow counts a task as one of the last when only tear-downs that it ignores come directly after it, so this one, which it
        does not ignore, comes after none else.

        :param tear_down: the last tear-down
        :param setups: the set-ups, with which this task is cleared
        """
        tear_down >> self.as_teardown(setups=setups, on_failure_fail_dagrun=True)
        # A tear-down is skipped together with its set-ups, as they are when the run is marked as failed before it comes to them.
        self.trigger_rule = TriggerRule.ALL_DONE

    def execute(self, context: Context) -> None:
        """Look at how the tasks have ended.

        :raises AirflowFailException: the run has failed; the message has the tasks that did
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
