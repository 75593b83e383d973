"""The generator of the table in docs/connectors.md: every connector with its direction, formats, guarantee, and requirements.

``python -m tools.connector_table`` reads the definitions and writes the text between the marks of the page; a test compares.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from airflow_pipelines.connectors.built_in import BUILT_IN_INPUTS, BUILT_IN_OUTPUTS
from airflow_pipelines.connectors.definition import ConnectorDefinition, Delivery, Guarantee, InputDefinition
from airflow_pipelines.connectors.registry import find_connector

DOCS: Final = Path(__file__).parent.parent / "docs"
PAGE: Final = DOCS / "connectors.md"
_BEGIN: Final = "<!-- connectors: `python -m tools.connector_table` writes what follows -->"
_END: Final = "<!-- end of connectors -->"
_HEAD: Final = "| transport | direction | formats | each row after a crash | goes on in the middle; waits | needs |"
_GUARANTEES: Final = {
    Guarantee.NONE: "may get lost or come again",
    Guarantee.AT_LEAST_ONCE: "at least once",
    Guarantee.EXACTLY_ONCE: "exactly once",
}


def table() -> str:
    """Return the table, from the definitions of this package."""
    lines = [_HEAD, re.sub(r"[^|]+", " --- ", _HEAD)]
    lines += [_line(definition) for names in (BUILT_IN_INPUTS, BUILT_IN_OUTPUTS) for definition in map(_known, sorted(names))]
    return "\n".join(lines)


def page() -> str:
    """Return the page with the current table."""
    text = PAGE.read_text()
    begin, end = text.index(_BEGIN) + len(_BEGIN), text.index(_END)
    return f"{text[:begin]}\n{table()}\n{text[end:]}"


def _known(name: str) -> ConnectorDefinition:
    found = find_connector(name)
    if found is None:
        raise LookupError(name)
    return found


def _line(definition: ConnectorDefinition) -> str:
    formats = ", ".join(definition.formats) or "none"
    needs = f"`airflow-pipelines[{definition.extra}]`" if definition.extra and definition.packages else ""
    if isinstance(definition, InputDefinition):
        goes_on = "yes" if definition.seekable else "no"
        cells = ["input", formats, _GUARANTEES[definition.guarantee], goes_on, needs]
    else:
        waits = "steps wait for it" if definition.delivery is Delivery.IN_STEP else "from a queue"
        if definition.delivery_of is not None:
            waits += "; its options may change that"
        index = "; an `index`" if definition.needs_index else ""
        cells = ["output", formats, _GUARANTEES[definition.guarantee], waits, needs + index if needs else index.removeprefix("; ")]
    return f"| [`{definition.name}`]({_place(definition.name)}) | {' | '.join(cells)} |"


def _place(name: str) -> str:
    """Return the link to the heading with the connector's name, on any page."""
    for page_of in (PAGE, *sorted(DOCS.glob("*.md"))):
        if re.search(rf"^##+ `?{name}`?$", page_of.read_text(), re.MULTILINE):
            return f"#{name}" if page_of == PAGE else f"{page_of.name}#{name}"
    raise LookupError(f"no page of docs/ has a heading {name!r}")


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")
