"""The generator of docs/constructs.md: every SQL construct with the planner's strategies for an example of it.

The examples are in ``constructs.sql``. ``python -m tools.constructs`` writes the page; a test compares it with the planner's
output.
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
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.stage import Stage, ViewPlan

EXAMPLES = Path(__file__).with_suffix(".sql")
PAGE = Path(__file__).parent.parent / "docs" / "constructs.md"
_EXAMPLE = re.compile(r"-- ([^\n]+)\n((?:(?!--)[^\n]+\n)+)")


@dataclass(frozen=True, slots=True)
class Construct:
    """A construct's name and the query (or the statements) of its example."""

    name: str
    text: str


def constructs() -> tuple[str, dict[str, list[Construct]]]:
    """Return the statements that declare the tables of the examples, and the examples by group."""
    _, tables, *groups = EXAMPLES.read_text().split("-- ## ")
    found = {}
    for group in groups:
        title, _, rest = group.partition("\n")
        found[title] = [Construct(name, " ".join(text.split()).rstrip(";")) for name, text in _EXAMPLE.findall(rest)]
    return tables.partition("\n")[2].strip(), found


MEANINGS = {
    "linear": "the rule of filters and projections: applied to the change alone",
    "union": "the changes of its parts",
    "join": "the rule of inner joins: the change of one side with the contents of the others",
    "accumulators": "sums per group, to which the change is added",
    "touched groups": "the groups that the change touches are computed anew",
    "join by touched keys": "the rows with the join keys that the change touches are joined anew",
    "subquery by touched keys": "the subquery is evaluated anew for the keys that the change touches",
    "window by touched keys": "the partitions that the change touches are computed anew",
    "top-k by new rows": "the known first rows and the new rows are ranked; no other rows are kept",
    "top by touched keys": "the first rows are found anew for the keys that the change touches",
    "recursion": "the fixed point is followed from the change on",
}
RECOMPUTED = "recomputed from its input when that changes, and the stored answer subtracted"


def page(sessions: SparkSessions) -> str:
    """Return the text of the page."""
    return "\n".join(_lines(sessions)) + "\n"


def _lines(sessions: SparkSessions) -> Iterator[str]:
    yield "# What is incremental, and how"
    yield ""
    yield "<!-- Written by `python -m tools.constructs` from what the planner says of each example; do not edit. -->"
    yield ""
    yield "A view is decomposed into stages. Each stage has a strategy by which it follows the changes of what it reads."
    yield "What has no strategy is recomputed in full and compared with what was stored: the answer is the same, at a higher cost."
    yield ""
    yield "| strategy | what a step does |"
    yield "| --- | --- |"
    for name, meaning in MEANINGS.items():
        yield f"| {name} | {meaning} |"
    yield f"| ... by recomputing, full | {RECOMPUTED} |"
    yield ""
    yield "The examples read these tables:"
    yield ""
    tables, groups = constructs()
    yield f"```sql\n{tables}\n```"
    for group, examples in groups.items():
        yield ""
        yield f"## {group}"
        yield ""
        yield "| construct | example | stages |"
        yield "| --- | --- | --- |"
        for construct in examples:
            yield f"| {construct.name} | `{construct.text}` | {strategies(construct, tables, sessions)} |"


def strategies(construct: Construct, tables: str, sessions: SparkSessions) -> str:
    """Return the strategies of a construct's stages in order, with the reason if a stage is recomputed in full."""
    whole = not construct.text.startswith(("SELECT", "WITH"))
    text = construct.text if whole else f"CREATE VIEW v AS {construct.text}"
    try:
        plan = compile_program(f"{tables}{text};", sessions).plans["v"]
    except ProgramErrors as errors:
        return f"refused: {errors.messages[0].message}"
    return describe(plan)


def describe(plan: ViewPlan) -> str:
    """Return a plan's strategies in words, with the reason if a stage is recomputed."""
    return ", then ".join(map(_described, plan.stages))


def _described(stage: Stage) -> str:
    if stage.reason is None:
        return f"{stage.strategy} (a constant)" if isinstance(stage.node, Full) else stage.strategy
    asked = f": `{stage.reason.expression}`" if stage.reason.expression else ""
    return f"{stage.strategy} ({stage.reason}{asked})"


def main() -> None:
    """Write the page."""
    spark = build_spark("local[2]", "constructs", {})
    try:
        PAGE.write_text(page(SparkSessions.of(spark)))
    finally:
        spark.stop()
    sys.stdout.write(f"Written to {PAGE.name}\n")


if __name__ == "__main__":
    main()
