"""The differences between the files of two stream programs, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import unified_diff
from typing import Final

from airflow_pipelines.contract.change_plan import FileChange, FileChangeKind
from airflow_pipelines.program.sources import ProgramSource

COMMAND_LINE: Final = "command line"
MAX_DIFF: Final = 20_000
"""The maximum number of characters of one file's diff."""
MAX_ALL: Final = 5 * MAX_DIFF
"""The maximum number of characters of all diffs together, since they are part of the pipeline's status."""
MAX_COMPARED: Final = 20_000
"""The maximum number of lines of both texts of a file that are compared, since the time to compare grows faster than the number."""


def file_changes(saved: ProgramSource, new: ProgramSource) -> tuple[FileChange, ...]:
    """Return the changes of the command line and of the files, in the order of the new program; removed files come last.

    :param saved: the source of one program
    :param new: the source of the other program
    """
    changes = [*_compare_arguments(saved.stream_arguments, new.stream_arguments), *_changes(saved.stream_texts, new.stream_texts)]
    return tuple(_limit_length(changes))


def _limit_length(changes: Iterable[FileChange]) -> Iterator[FileChange]:
    left = MAX_ALL
    for change in changes:
        left -= len(change.diff)
        yield change if left >= 0 else replace(change, diff="(the lines that differ are left out, there are too many in all files)")


def _compare_arguments(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[FileChange, ...]:
    """Return the change of the command line, shown like a file with one argument in each line."""
    if old == new:
        return ()
    return (FileChange(COMMAND_LINE, FileChangeKind.MODIFIED, _compare_texts("\n".join(old), "\n".join(new), COMMAND_LINE)),)


def _changes(old: dict[str, str], new: dict[str, str]) -> Iterator[FileChange]:
    for path in [*new, *(path for path in old if path not in new)]:
        if path not in old:
            yield FileChange(path, FileChangeKind.ADDED, _compare_texts("", new[path], path))
        elif path not in new:
            yield FileChange(path, FileChangeKind.REMOVED, _compare_texts(old[path], "", path))
        elif old[path] != new[path]:
            yield FileChange(path, FileChangeKind.MODIFIED, _compare_texts(old[path], new[path], path))


def _compare_texts(old: str, new: str, path: str) -> str:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MAX_COMPARED:
        return f"{path} is too long to be compared line by line: it had {len(before)} lines and has {len(after)}"
    if before == after:
        return f"only the ends of the lines of {path} differ"
    lines: list[str] = []
    size = 0
    for line in unified_diff(before, after, f"saved/{path}", f"new/{path}", lineterm=""):
        size += len(line) + 1
        if size > MAX_DIFF:
            return "\n".join([*lines, "... (the rest of the difference is left out)"])
        lines.append(line)
    return "\n".join(lines)
