"""What a program is refused with."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.messages import ProgramErrors, ProgramMessage
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.sql.program.parser import parse_program


def errors(text: str) -> tuple[ProgramMessage, ...]:
    with pytest.raises(ProgramErrors) as caught:
        parse_program(text)
    return caught.value.messages


def the_error(text: str, at: str, occurrence: int = 0) -> str:
    """The only error's message, whose place must be the given piece of the text."""
    messages = errors(text)
    assert len(messages) == 1, caught_texts(messages)
    span = messages[0].span
    assert span is not None
    assert SourceText(text).slice(span) == at
    start = -1
    for _ in range(occurrence + 1):
        start = text.index(at, start + 1)
    assert SourceText(text).position(start) == (span.start_line, span.start_column)
    return messages[0].message


def caught_texts(messages: tuple[ProgramMessage, ...]) -> list[str]:
    return [message.message for message in messages]
