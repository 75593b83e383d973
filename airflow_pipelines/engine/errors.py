"""Errors of steps, with secrets masked in their texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_USER: Final = re.compile(r"(?<=://)[^/\s@]+@")
_SETTING: Final = re.compile(r"(?i)([\w.-]*(?:password|passwd|secret|token|credential|access[._-]?key)[\w.-]*[\"']?\s*[=:]\s*)\S+")


@dataclass(frozen=True, slots=True)
class FailingRow:
    """A row of ``relation``'s delta that makes a step fail. Values that JSON does not support are texts."""

    relation: str
    row: Mapping[str, Any]


class StepError(Exception):
    """The failure of a step as a whole; nothing of the step is kept.

    :param view: the relation whose evaluation failed
    :param condition: Spark's error condition (``DIVIDE_BY_ZERO`` ...), or the exception's class
    :param message: a short cause
    :param expression: the text of the failing expression if Spark reports one, or None
    :param failing_row: a row that alone makes the step fail, if there is one and it was found
    :param trace: the full text, for a log, of an error that the message does not explain, such as a fault within Java
    """

    def __init__(
        self,
        view: str,
        condition: str,
        message: str,
        expression: str | None = None,
        failing_row: FailingRow | None = None,
        trace: str | None = None,
    ) -> None:
        super().__init__(f"view {view!r}: {condition}: {message}")
        self.view = view
        self.condition = condition
        self.message = message
        self.expression = expression
        self.failing_row = failing_row
        self.trace = trace


def mask_secrets(text: str) -> str:
    """Mask the passwords, tokens and keys of addresses and settings in a text from a library.

    :param text: a text such as an exception's message
    """
    return _SETTING.sub(r"\1***", _USER.sub("***@", text))
