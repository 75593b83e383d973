"""Parts of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.service import log_lines
from airflow_pipelines.service.log_lines import last_lines, lines_after


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "p.log"
    path.write_text("".join(f"line {number}\n" for number in range(10)), encoding="utf-8")
    return path


def test_the_last_lines_and_then_what_comes_after_them(log: Path) -> None:
    found = last_lines(log, 3)
    assert (found.lines, found.begin, found.end, found.cut) == (["line 7", "line 8", "line 9"], 49, 70, True)
    assert last_lines(log, 10).cut is False
    with log.open("a", encoding="utf-8") as file:
        file.write("Zürich\nhalf a li")
    after = lines_after(log, found.end, 500)
    # A line that is being written is told when it is whole.
    assert (after.lines, after.end, after.cut) == (["Zürich"], found.end + 8, False)
    assert last_lines(log, 1).lines == ["Zürich"]
    assert lines_after(log, after.end, 500).lines == []
    with log.open("a", encoding="utf-8") as file:
        file.write("ne\n")
    assert lines_after(log, after.end, 500).lines == ["half a line"]


def test_many_lines_are_told_one_answer_after_the_other(log: Path) -> None:
    told, place = [], 0
    while (found := lines_after(log, place, 4)).lines:
        told += found.lines
        place = found.end
    assert told == [f"line {number}" for number in range(10)]


def test_a_log_that_was_replaced_begins_anew_and_says_so(log: Path) -> None:
    log.write_text("fresh\n", encoding="utf-8")
    found = lines_after(log, 70, 500)
    assert (found.lines, found.begin, found.end, found.cut) == (["fresh"], 0, 6, True)


def test_answers_are_bounded(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "MOST_BYTES", 16)
    # The first of the last 16 bytes are of a line that is not shown.
    assert (last_lines(log, 500).lines, last_lines(log, 500).begin) == (["line 8", "line 9"], 56)
    assert lines_after(log, 0, 500).lines == ["line 0", "line 1"]
    log.write_text("x" * 40, encoding="utf-8")
    assert [len(part) for part in lines_after(log, 0, 500).lines] == [16]


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none", 5) == lines_after(tmp_path / "none", 5, 5)
    assert last_lines(tmp_path / "none", 5).lines == []
