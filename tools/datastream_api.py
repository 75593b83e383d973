"""The generator of the tables in docs/datastream.md: every class, method and parameter of stream programs, and their effect.

``python -m tools.datastream_api`` reads the code and writes the text between the marks of the page; a test compares the two.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_pipelines.datastream.common.no_effect import why_no_effect

PAGE = Path(__file__).parent.parent / "docs" / "datastream.md"
PACKAGE = "airflow_pipelines"
MODULES = (
    "datastream",
    "datastream.async_retry_strategies",
    "datastream.functions",
    "datastream.state",
    "datastream.window",
    "datastream.connectors",
    "datastream.formats.avro",
    "datastream.formats.csv",
    "datastream.formats.orc",
    "datastream.formats.parquet",
    "datastream.common",
)

_ACCEPTED = "accepted, no effect: "
SAME_AS = "The same as "


@dataclass(frozen=True)
class Entry:
    """One row: a class, a member of it, or a constant.

    :param name: module, class and member, as a program writes them after the name of the package
    :param parameters: names of the parameters; None for a constant
    :param does: its function, in a sentence
    :param remark: empty if it works; else the reason why it has no effect, or that it is refused
    """

    name: str
    parameters: tuple[str, ...] | None
    does: str
    remark: str = ""

    @property
    def signature(self) -> str:
        """The name with its parameters."""
        return self.name if self.parameters is None else f"{self.name}({', '.join(self.parameters)})"


def entries() -> list[Entry]:
    """Return everything that stream programs may use, from the code.

    :returns: rows, in the order of modules and names
    """
    found: list[Entry] = []
    shown: dict[type, str] = {}
    for module in MODULES:
        members = importlib.import_module(f"{PACKAGE}.{module}")
        for exported in sorted(members.__all__):
            value, name = getattr(members, exported), f"{module}.{exported}"
            if not inspect.isclass(value):
                continue
            if value in shown:
                found.append(Entry(name, _parameters(value), f"{SAME_AS}`{shown[value]}`."))
            else:
                shown[value] = name
                found += _of_class(value, name)
    return found


def _of_class(cls: type, name: str) -> Iterator[Entry]:
    found = [Entry(name, _parameters(cls), _first_sentence(cls.__doc__), _remark(cls.__init__))]
    for member in sorted(_own_names(cls)):
        found += _of_member(cls, member, f"{name}.{member}")
    yield from found


def _own_names(cls: type) -> set[str]:
    own = [base for base in cls.__mro__ if base.__module__.startswith(f"{PACKAGE}.")]
    return {name for base in own for name in vars(base) if not name.startswith("_") and name != "is_immutable_value"}


def _of_member(cls: type, member: str, name: str) -> Iterator[Entry]:
    value = inspect.getattr_static(cls, member)
    function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    if inspect.isclass(function):
        if not issubclass(cls, function) and member == function.__name__:
            yield from _of_class(function, name)
    elif inspect.isfunction(function):
        is_method = not isinstance(value, staticmethod)
        yield Entry(name, _names(inspect.signature(function), skip=is_method), _first_sentence(function.__doc__), _remark(function))
    elif isinstance(value, property):
        yield Entry(name, None, _first_sentence(value.__doc__))
    elif isinstance(cls, enum.EnumType) or member.isupper():
        yield Entry(name, None, f"The constant {_shown(value)}.")


def _parameters(cls: type) -> tuple[str, ...]:
    makes = cls.__new__ if "__new__" in vars(cls) else cls.__init__
    if issubclass(cls, enum.Enum) or not inspect.isfunction(makes):
        return ()
    return _names(inspect.signature(makes), skip=True)


def _names(signature: inspect.Signature, *, skip: bool) -> tuple[str, ...]:
    parameters = [each for each in list(signature.parameters.values())[1 if skip else 0 :] if not each.name.startswith("_")]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return tuple(stars.get(each.kind, "") + each.name for each in parameters)


def _remark(function: Any) -> str:
    why = why_no_effect(function)
    if why is not None:
        return f"{_ACCEPTED}{why}"
    plain = inspect.unwrap(function)
    hints = getattr(plain, "__annotations__", {})
    return "refused" if hints.get("return") in ("NoReturn", typing.NoReturn) else ""


def _shown(value: Any) -> str:
    shown = value.value if isinstance(value, enum.Enum) else value
    return f"`{shown!r}`" if isinstance(shown, int | str | tuple) else f"of `{type(shown).__name__}`"


def _first_sentence(text: str | None) -> str:
    first = (inspect.cleandoc(text or "").split("\n\n")[0]).replace("\n", " ")
    return re.sub(r":\w+:`[~.]?(?:[\w.]*\.)?(\w+)`", r"`\1`", first).replace("``", "`").replace("|", "\\|")


def tables(found: list[Entry]) -> dict[str, str]:
    """Return the tables of the page, by the names of their marks.

    :param found: the rows
    :returns: the text of each table
    """
    kept = [
        f"| `{entry.signature}` | {entry.remark.removeprefix('accepted, no effect: ')} |"
        for entry in found
        if "no effect" in entry.remark
    ]
    rows = [f"| `{entry.signature}` | {entry.does} | {entry.remark or 'works'} |" for entry in found]
    return {
        "no effect": "\n".join(["| what | why it has no effect |", "| --- | --- |", *kept]),
        "api": "\n".join(["| name | what it does | here |", "| --- | --- | --- |", *rows]),
    }


def page(text: str) -> str:
    """Return the page with the tables of the code.

    :param text: the current page
    :returns: the updated page
    :raises ValueError: when a mark is missing
    """
    for name, table in tables(entries()).items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, found_begin, rest = text.partition(begin)
        _, found_end, after = rest.partition(end)
        if not (found_begin and found_end):
            raise ValueError(f"docs/datastream.md has no lines '<!-- begin {name} -->' and '<!-- end {name} -->'")
        text = f"{before}{begin}{table}\n{end}{after}"
    return text


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text()))
    sys.stdout.write(f"Written to {PAGE.name}\n")


if __name__ == "__main__":
    main()
