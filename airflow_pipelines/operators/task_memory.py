"""The memory of a task, which survives retries and clearing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context


class TaskMemory:
    """The values that a task keeps in Airflow's store for a task instance.

    Without a store (a task that is run by hand) nothing is kept.

    :param context: the task's context
    """

    def __init__(self, context: Context) -> None:
        self._store: Any = context.get("task_state_store")

    def recall(self, key: str) -> Any:
        """Return a value that was remembered, or None if there is none.

        :param key: its key
        """
        return None if self._store is None else self._store.get(key)

    def remember(self, key: str, value: Any) -> None:
        """Store a JSON value.

        :param key: its key
        :param value: the value
        """
        if self._store is not None:
            self._store.set(key, value)

    def forget(self, key: str) -> None:
        """Delete a value.

        :param key: its key
        """
        if self._store is not None:
            self._store.delete(key)
