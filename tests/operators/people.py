"""Airflow's part of a conversation with a person, for tests: what people are shown, what they answer, what a task remembers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_pipelines.operators import request


class Memory(dict[str, Any]):
    """Airflow's store for a task instance."""

    def set(self, key: str, value: Any) -> None:
        assert value is not None
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)


class Person:
    """Somebody who answers requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown: list[dict[str, Any]] = []
        self.stored: str | None = None
        self.pushed: dict[str, Any] = {}
        self.memory = Memory()
        monkeypatch.setattr(
            "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **request: self.shown.append(request)
        )
        monkeypatch.setattr(request, "stored_request_body", lambda _context, operator: self.stored or operator.body)
        person = self

        class TaskInstance:
            id = "ti"

            @staticmethod
            def xcom_push(key: str, value: Any) -> None:
                person.pushed[key] = value

        self.context: Any = {"task_instance": TaskInstance, "ti": TaskInstance, "task_state_store": self.memory}

    def answers(self, option: str, *, name: str | None = "Ada") -> dict[str, Any]:
        """An answer as Airflow hands it to the task."""
        return {
            "chosen_options": [option],
            "params_input": {},
            "responded_at": datetime.now(UTC),
            "responded_by_user": None if name is None else {"id": "1", "name": name},
        }


NOBODY = {"error": "The Human-in-the-loop response timeout has passed without a response.", "error_type": "timeout"}
"""What Airflow hands to a task whose request nobody has answered in time."""
