"""What a task remembers from one try to the next, and when it is cleared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context


class TaskMemory:
    """Airflow's store for a task instance, where there is one: without it (a task that is executed by hand) nothing is remembered.

    :param context: the task's context
    """

    def __init__(self, context: Context) -> None:
        self._store: Any = context.get("task_state_store")

    def recall(self, key: str) -> Any:
        """What was remembered, None for nothing.

        :param key: its name
        """
        return None if self._store is None else self._store.get(key)

    def remember(self, key: str, value: Any) -> None:
        """Keep a JSON value.

        :param key: its name
        :param value: the value
        """
        if self._store is not None:
            self._store.set(key, value)

    def forget(self, key: str) -> None:
        """Keep something no longer.

        :param key: its name
        """
        if self._store is not None:
            self._store.delete(key)
