"""What a program gave in one package, and what two outcomes have in common."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from tools.compare_flink.case import Case, Order
from tools.compare_flink.plain import shown

_RAISED = re.compile(r"(\w+\.)*\w*(Error|Exception): |Caused by: pemja")


@dataclass(frozen=True)
class Outcome:
    """What one program gave for one input.

    :param case: its name
    :param number: which of the inputs
    :param results: plain values, in the order in which they came; None when it failed
    :param error: what it failed with
    """

    case: str
    number: int
    results: list[Any] | None
    error: str | None

    def to_line(self) -> str:
        """The outcome as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Outcome:
        """Read what :meth:`to_line` wrote."""
        return cls(**json.loads(line))


class Verdict(Enum):
    """What two outcomes are to each other."""

    EQUAL = "equal"
    DIFFERENT = "different"
    DELIBERATE = "meant to differ"
    ONLY_HERE = "not in PyFlink"


def verdict(case: Case, ours: Outcome, theirs: Outcome) -> Verdict:
    """Judge two outcomes of one program.

    What is listed as a difference and is none counts as different: the list is to be true.
    """
    if case.only_here is not None:
        return Verdict.ONLY_HERE if ours.error is None and theirs.error is not None else Verdict.DIFFERENT
    same = _same(case, ours, theirs)
    if case.differs is not None:
        failed = ours.results is None or theirs.results is None
        return Verdict.DIFFERENT if same or failed else Verdict.DELIBERATE
    return Verdict.EQUAL if same else Verdict.DIFFERENT


def _same(case: Case, ours: Outcome, theirs: Outcome) -> bool:
    if case.fails:
        return ours.error is not None and theirs.error is not None
    if ours.results is None or theirs.results is None:
        return False
    if case.order is Order.EXACT:
        return ours.results == theirs.results
    if Counter(map(shown, ours.results)) != Counter(map(shown, theirs.results)):
        return False
    return case.order is Order.NONE or _by_key(ours.results) == _by_key(theirs.results)


def _by_key(results: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for result in results:
        found.setdefault(shown(_first(result)), []).append(result)
    return found


def _first(result: Any) -> Any:
    match result:
        case {"tuple": [first, *_]} | {"Row": {"values": [first, *_]}} | [first, *_]:
            return first
    raise ValueError(f"{shown(result)} has no first field, which results are told apart by")


def cause(error: str) -> str:
    """The line of an error's text that says why: the last one of a traceback of Python, else the innermost cause of the JVM."""
    lines = [line.strip() for line in error.splitlines()]
    raised = [line for line in lines[1:] if _RAISED.match(line)]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (raised or causes or lines[:1] or [""])[-1]


def difference(ours: Outcome, theirs: Outcome) -> list[str]:
    """What the outcomes differ in, a line for each package."""
    return [f"  ours:  {_text(ours, theirs)}", f"  Flink: {_text(theirs, ours)}"]


def _text(outcome: Outcome, other: Outcome) -> str:
    if outcome.results is None:
        return f"failed with {outcome.error}"
    texts = list(map(shown, outcome.results))
    surplus = Counter(texts) - Counter(map(shown, other.results or []))
    if surplus and other.results is not None:
        return f"{len(texts)} results, only here: {', '.join(surplus.elements())}"
    return ", ".join(texts) or "no results"
