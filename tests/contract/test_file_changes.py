from __future__ import annotations

from airflow_pipelines.contract.change_plan import FileChange, FileChangeKind
from airflow_pipelines.contract.file_changes import MAX_ALL, MAX_COMPARED, MAX_DIFF, file_changes
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.program.stream_files import stream_files


def changes(old: dict[str, str], new: dict[str, str]) -> tuple[FileChange, ...]:
    return file_changes(ProgramSource("", "", stream_files(old)), ProgramSource("", "", stream_files(new)))


def test_each_file_that_differs_is_shown_line_by_line() -> None:
    old = {"program.py": "limit = 100\nrun()\n", "same.py": "x = 1", "gone.py": "old()"}
    new = {"program.py": "limit = 250\nrun()\n", "added.py": "new()", "same.py": "x = 1"}
    modified, added, removed = changes(old, new)
    assert modified == FileChange(
        "program.py",
        FileChangeKind.MODIFIED,
        "--- saved/program.py\n+++ new/program.py\n@@ -1,2 +1,2 @@\n-limit = 100\n+limit = 250\n run()",
    )
    assert (added.path, added.change) == ("added.py", FileChangeKind.ADDED)
    assert added.diff.endswith("+new()")
    assert (removed.path, removed.change) == ("gone.py", FileChangeKind.REMOVED)
    assert removed.diff.endswith("-old()")
    assert changes(old, old) == ()
    assert changes({}, {}) == ()


def test_what_a_line_by_line_difference_would_not_show() -> None:
    (change,) = changes({"a.py": "x = 1\ny = 2\n"}, {"a.py": "x = 1\r\ny = 2\r\n"})
    assert change.diff == "only the ends of the lines of a.py differ"
    (change,) = changes({"a.py": ""}, {"a.py": "# nothing\n"})
    assert change.diff.endswith("+# nothing")


def test_a_long_difference_is_cut_and_says_so() -> None:
    (change,) = changes({"a.py": ""}, {"a.py": "value = 12345\n" * 3000})
    assert len(change.diff) <= MAX_DIFF + 60
    assert change.diff.endswith("... (the rest of the difference is left out)")
    long = "x\n" * (MAX_COMPARED // 2)
    (compared,) = changes({"a.py": long}, {"a.py": long.removesuffix("x\n") + "y\n"})
    assert compared.diff.endswith("-x\n+y")
    (change,) = changes({"a.py": long}, {"a.py": long + "y\n"})
    lines = MAX_COMPARED // 2
    assert change.diff == f"a.py is too long to be compared line by line: it had {lines} lines and has {lines + 1}"


def test_other_arguments_are_shown() -> None:
    old, new = (ProgramSource("", stream_arguments=given) for given in (("--day", "1"), ("--day", "2")))
    (change,) = file_changes(old, new)
    assert (change.path, change.change) == ("command line", FileChangeKind.MODIFIED)
    assert change.diff.endswith(" --day\n-1\n+2")
    assert file_changes(old, old) == ()


def test_all_differences_together_have_a_limit() -> None:
    files = {f"m{number}.py": "value = 12345\n" * 3000 for number in range(10)}
    found = changes({"p.py": ""}, {"p.py": "", **files})
    assert [change.path for change in found] == list(files), "each file is named"
    assert sum(len(change.diff) for change in found) <= MAX_ALL + 1000
    assert found[0].diff.startswith("--- saved/m0.py")
    assert "are left out" in found[-1].diff
