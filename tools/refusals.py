"""The generator of docs/refusals.md: everything that the compiler refuses, with its error, its place, and the accepted alternative.

The examples are in ``refusals.sql``. ``python -m tools.refusals`` writes the page; a test compares it with the compiler's output.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.spark.sessions import SparkSessions, build_spark
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.source_text import SourceText

EXAMPLES = Path(__file__).with_suffix(".sql")
PAGE = Path(__file__).parent.parent / "docs" / "refusals.md"
_EXAMPLE = re.compile(r"-- (?!instead\n)([^\n]+)\n([^\n]+)(?:\n-- instead\n([^\n]+))?")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused construct: its name, an example of it, and the accepted alternative, if there is one."""

    name: str
    text: str
    instead: str | None


class NotRefusedError(Exception):
    """The error for an example that is accepted, or an alternative that is not."""


def refusals() -> tuple[str, dict[str, list[Refusal]]]:
    """Return the statements that declare the tables of the examples, and the examples by group."""
    tables, *groups = EXAMPLES.read_text().split("-- ## ")
    found = {}
    for group in groups:
        title, _, rest = group.partition("\n")
        found[title] = [Refusal(name, text, instead or None) for name, text, instead in _EXAMPLE.findall(rest)]
    return "\n".join(line for line in tables.splitlines() if not line.startswith("--")).strip(), found


def page(sessions: SparkSessions) -> str:
    """Return the text of the page.

    :raises NotRefusedError: when an example is not refused any more, or an alternative is
    """
    return "\n".join(_lines(sessions)) + "\n"


def _lines(sessions: SparkSessions) -> Iterator[str]:
    tables, groups = refusals()
    yield "# What is refused, and what to write instead"
    yield ""
    yield "<!-- Written by `python -m tools.refusals` from what the compiler says of each example; do not edit. -->"
    yield ""
    yield "Each error has its place in the program; the part of the example at which it points is shown in the third column."
    yield "What is not here is accepted: a query that has no incremental rule is recomputed, see [constructs.md](constructs.md)."
    yield ""
    yield "The examples read these tables:"
    yield ""
    yield f"```sql\n{tables}\n```"
    for group, examples in groups.items():
        yield ""
        yield f"## {group}"
        yield ""
        yield "| refused | example | place | error | accepted instead |"
        yield "| --- | --- | --- | --- | --- |"
        for refusal in examples:
            place, message = refused(refusal, tables, sessions)
            instead = _code(refusal.instead) if refusal.instead else ""
            yield f"| {refusal.name} | {_code(refusal.text)} | {_code(place)} | {_shown(message)} | {instead} |"


def refused(refusal: Refusal, tables: str, sessions: SparkSessions) -> tuple[str, str]:
    """Return the part of the example at which its error points, and the error's message.

    :raises NotRefusedError: when the example is accepted, its error has no place, or the alternative is refused
    """
    text = _program(refusal.text, tables)
    try:
        compile_program(text, sessions)
    except ProgramErrors as errors:
        message = errors.messages[0]
    else:
        raise NotRefusedError(f"{refusal.name} is not refused: {refusal.text}")
    if message.span is None:
        raise NotRefusedError(f"the error of {refusal.name} has no place: {message.message}")
    place = SourceText(text).slice(message.span)
    if place not in refusal.text:
        raise NotRefusedError(f"the error of {refusal.name} points outside of its example: {place}")
    if refusal.instead is not None:
        try:
            compile_program(_program(refusal.instead, tables), sessions)
        except ProgramErrors as errors:
            raise NotRefusedError(f"what to write instead of {refusal.name} is refused: {errors.messages[0].message}") from errors
    return place, message.message


def _program(example: str, tables: str) -> str:
    query = example.startswith(("SELECT ", "WITH "))
    return f"{tables}\nCREATE VIEW v AS {example}" if query else f"{tables}\n{example}"


def _code(text: str) -> str:
    quotes = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{quotes}{space}{_shown(text)}{space}{quotes}"


def _shown(text: str) -> str:
    return " ".join(text.rstrip(";").split()).replace("|", "\\|")


def main() -> None:
    """Write the page."""
    spark = build_spark("local[2]", "refusals", {})
    try:
        PAGE.write_text(page(SparkSessions.of(spark)))
    finally:
        spark.stop()
    sys.stdout.write(f"Written to {PAGE.name}\n")


if __name__ == "__main__":
    main()
