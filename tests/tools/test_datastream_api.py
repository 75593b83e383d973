"""The tables of docs/datastream.md say what the code has, and the code has all that the contract names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.datastream_api import PAGE, SAME_AS, Entry, entries, page

CONTRACT = Path(__file__).parents[1] / "datastream" / "contract.txt"
_NAME = re.compile(r"([\w.]+)(?:\((.*)\))?")


@pytest.fixture(scope="module")
def found() -> dict[str, Entry]:
    found = {entry.name: entry for entry in entries()}
    for entry in list(found.values()):
        if entry.does.startswith(SAME_AS):
            original = entry.does.removeprefix(SAME_AS).strip("`.")
            for name, member in list(found.items()):
                if name.startswith(f"{original}."):
                    found[entry.name + name.removeprefix(original)] = member
    return found


def _demanded() -> list[tuple[str, tuple[str, ...]]]:
    lines = [line for line in CONTRACT.read_text().splitlines() if line and not line.startswith("#")]
    matches = [_NAME.fullmatch(line) for line in lines]
    assert None not in matches
    return [(match[1], tuple(filter(None, (match[2] or "").split(", ")))) for match in matches if match is not None]


def test_every_name_of_the_contract_has_its_row(found: dict[str, Entry]) -> None:
    demanded = _demanded()
    assert len(demanded) > 600
    assert [name for name, _ in demanded if name not in found] == []


def test_every_parameter_of_the_contract_can_be_given_by_its_name(found: dict[str, Entry]) -> None:
    missing = []
    for name, parameters in _demanded():
        given = found[name].parameters or () if name in found else parameters
        # Further parameters may stand in between, but what the contract names comes in its order.
        if [each for each in given if each in parameters] != list(parameters):
            missing.append((name, parameters, given))
    assert missing == []


def test_every_row_says_what_it_is(found: dict[str, Entry]) -> None:
    assert [entry.name for entry in found.values() if not entry.does] == []


def test_the_page_is_what_the_code_says_now() -> None:
    text = PAGE.read_text()
    assert text == page(text), "run `make docs`"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="has no lines '<!-- begin no effect -->'"):
        page("# Nothing")
