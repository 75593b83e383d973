"""The views of the suite: files of SQL with ordinary CREATE VIEW statements.

A line ``-- spark: ...`` after a statement (with more lines ``-- ...``) is the query to ask Spark where Spark has no such construct
or leaves the answer open. A line ``-- wrong: ...`` says why a view does not equal Spark's answer yet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from tests.differential.data import TABLES

FOLDER = Path(__file__).parent / "views"
_STATEMENT = re.compile(r"^(?P<text>(?:create|declare) .*?;)(?P<notes>(?:\n--[^\n]*)*)", re.MULTILINE | re.DOTALL)
_VIEW = re.compile(r"create (?:local |materialized )?view (?P<name>\w+)(?: \([^)]*\))? as\s(?P<query>.*);", re.DOTALL)
_DECLARED = re.compile(r"declare recursive view (?P<name>\w+) \(.*\);", re.DOTALL)


@dataclass(frozen=True, slots=True)
class View:
    """A view's name, its query as written, the query for Spark, and why they differ where they do."""

    name: str
    query: str
    spark: str
    wrong: str | None = None


@dataclass(frozen=True, slots=True)
class Theme:
    """One file: its name, the program's text without tables, its views, and the names of the recursive ones."""

    name: str
    text: str
    views: Sequence[View]
    recursive: Set[str]

    @property
    def tables(self) -> list[str]:
        """The tables that its views read."""
        return [name for name in TABLES if self.reads(name, self.text)]

    @property
    def read(self) -> set[str]:
        """The views that other views of the theme read, or that read themselves."""
        return {view.name for view in self.views if any(self.reads(view.name, other.query) for other in self.views)}

    @staticmethod
    def reads(name: str, text: str) -> bool:
        """Whether a text names a relation."""
        return re.search(rf"\b{name}\b", text) is not None


def _note(notes: str, kind: str) -> str | None:
    found = re.search(rf"\n-- {kind}: (.*?)(?=\n-- (?:spark|wrong): |\Z)", notes, re.DOTALL)
    return re.sub(r"\n-- ?", "\n", found[1]).strip() if found else None


def theme(path: Path) -> Theme:
    """Read a file of views.

    :raises ValueError: when a statement is neither a view nor a declaration
    """
    views, recursive, texts = [], set(), []
    for statement in _STATEMENT.finditer(path.read_text()):
        text, notes = statement["text"], statement["notes"]
        texts.append(text)
        declared = _DECLARED.fullmatch(text)
        if declared is not None:
            recursive.add(declared["name"])
            continue
        view = _VIEW.fullmatch(text)
        if view is None:
            raise ValueError(f"{path.name}: {text}")
        query = view["query"].strip()
        views.append(View(view["name"], query, _note(notes, "spark") or query, _note(notes, "wrong")))
    return Theme(path.stem, "\n".join(texts), views, recursive)


THEMES: Sequence[Theme] = [theme(path) for path in sorted(FOLDER.glob("*.sql"))]
