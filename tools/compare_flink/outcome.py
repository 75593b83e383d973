"""The outcome of a program in one package, and the comparison of two outcomes."""

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
    """The outcome of one program for one input.

    :param case: the name of the case
    :param number: the number of the input
    :param results: plain values, in order of arrival; None if it failed
    :param error: the error if it failed
    """

    case: str
    number: int
    results: list[Any] | None
    error: str | None

    def to_line(self) -> str:
        """Return the outcome as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Outcome:
        """Parse a line that :meth:`to_line` wrote."""
        return cls(**json.loads(line))


class Verdict(Enum):
    """The result of the comparison of two outcomes."""

    EQUAL = "equal"
    DIFFERENT = "different"
    DELIBERATE = "meant to differ"
    ONLY_HERE = "not in PyFlink"


def verdict(case: Case, ours: Outcome, theirs: Outcome) -> Verdict:
    """Compare two outcomes of one program.

    An intentional difference that does not occur counts as different, so that the list of differences stays true.
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
    """Return the line with the cause of an error: the last one of a Python traceback, else the innermost cause of the JVM."""
    lines = [line.strip() for line in error.splitlines()]
    raised = [line for line in lines[1:] if _RAISED.match(line)]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (raised or causes or lines[:1] or [""])[-1]


def difference(ours: Outcome, theirs: Outcome) -> list[str]:
    """Return the difference of the outcomes, a line for each package."""
    return [f"  ours:  {_text(ours, theirs)}", f"  Flink: {_text(theirs, ours)}"]


def _text(outcome: Outcome, other: Outcome) -> str:
    if outcome.results is None:
        return f"failed with {outcome.error}"
    texts = list(map(shown, outcome.results))
    surplus = Counter(texts) - Counter(map(shown, other.results or []))
    if surplus and other.results is not None:
        return f"{len(texts)} results, only here: {', '.join(surplus.elements())}"
    return ", ".join(texts) or "no results"
