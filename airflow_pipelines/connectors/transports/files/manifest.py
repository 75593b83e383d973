"""The manifest of a folder of files, which records the files of each step. Its files are shown only when they are complete.

A step that is written gets a file of its own in the manifest. Whenever there are many, one file replaces the oldest of
them, named by its first and its last step. So the manifest of a pipeline that runs for years stays a small part of its folder.
Where the steps of one file are within those of another, the larger one counts; the smaller ones stay for a while, so that
readers that have listed them can still read them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.files.folder import Folder

MANIFEST: Final = "_commits"
"""The folder of the manifest, below that of the files."""
STEPS_TOGETHER: Final = 1000
"""The number of steps with a file each that are compacted into one file."""
_NAME: Final = re.compile(r"(\d{20})(?:-(\d{20}))?\.json")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a step.

    :param name: the name of the file
    :param rows: the number of changes in it
    :param size: the size in bytes
    :param step: the step's number
    """

    name: str
    rows: int
    size: int
    step: int


@dataclass(frozen=True, slots=True)
class _Span:
    """The steps of one file of the manifest: one, or all from the first to the last that were written."""

    first: int
    last: int

    @property
    def name(self) -> str:
        if self.first == self.last:
            return f"{self.first:020d}.json"
        return f"{self.first:020d}-{self.last:020d}.json"

    @property
    def is_one_step(self) -> bool:
        return self.first == self.last


class Manifest:
    """The manifest of one output."""

    def __init__(self, folder: Folder, output: str, check_newest: Callable[[], None]) -> None:
        """Touch nothing yet.

        :param folder: the folder of the manifest
        :param output: the name of the output that writes it
        :param check_newest: a function that raises if another run writes it now
        """
        self._folder = folder
        self._output = output
        self._check_newest = check_newest
        self._spans: list[_Span] = []
        self._outdated: list[_Span] = []

    def open(self) -> None:
        """Read which steps there are, and remove what a crash left and files that newer ones replace.

        :raises ConnectorFailure: when another output writes here
        """
        self._folder.make()
        names = self._folder.names()
        self._spans, self._outdated = _split_outdated(_spans_of(names))
        if self._spans:
            self._check_output(self._spans[-1])
        self._remove_outdated()
        self._folder.remove(name for name in names if _NAME.fullmatch(name[1:]) and name.startswith("."))

    @property
    def last_step(self) -> int:
        """The newest step, or -1 if there is none."""
        return self._spans[-1].last if self._spans else -1

    def add(self, step: int, files: Sequence[ListedFile]) -> None:
        """Commit a step: readers of the manifest see its files from now on.

        :param step: the number of the step, greater than all before
        :param files: the files of the step, which are complete
        """
        self._put(_Span(step, step), files)
        self._spans.append(_Span(step, step))

    def take_back(self, after: int) -> None:
        """Take back all steps after another one, the newest first, so that the rest always is a state that existed once.

        :param after: the step after which all are taken back
        """
        self._remove_outdated()
        while self.last_step > after:
            newest = self._spans[-1]
            if newest.first <= after:
                # While the larger one is there, this one does not count.
                cut = _Span(newest.first, after)
                self._put(cut, [file for file in self._files_of([newest]) if file.step <= after])
                self._spans.insert(-1, cut)
            self._folder.remove([newest.name])
            self._spans.pop()

    def compact(self) -> None:
        """Replace the files of the oldest steps that have one each by one file, when there are many."""
        begin = _find_end_of_compacted(self._spans)
        single = self._spans[begin : begin + STEPS_TOGETHER]
        if len(single) < STEPS_TOGETHER:
            return
        self._remove_outdated()
        together = _Span(single[0].first, single[-1].last)
        self._check_newest()
        self._put(together, self._files_of(single))
        try:
            # A run that has started meanwhile may have taken some of these steps back.
            self._check_newest()
        except Exception:
            self._folder.remove([together.name])
            raise
        self._spans[begin : begin + STEPS_TOGETHER] = [together]
        self._outdated = single

    def _put(self, span: _Span, files: Iterable[ListedFile]) -> None:
        steps = {"step": span.last} if span.is_one_step else {"first": span.first, "last": span.last}
        listed = [{"name": file.name, "rows": file.rows, "bytes": file.size, "step": file.step} for file in files]
        self._folder.put(span.name, json.dumps({"output": self._output, **steps, "files": listed}).encode())

    def _files_of(self, spans: Sequence[_Span]) -> list[ListedFile]:
        return [
            # Earlier releases did not store the step of each file.
            ListedFile(file["name"], file["rows"], file["bytes"], file.get("step", span.last))
            for span, content in zip(spans, self._contents(spans), strict=True)
            for file in content["files"]
        ]

    def _contents(self, spans: Sequence[_Span]) -> Iterator[Mapping[str, Any]]:
        for span, data in zip(spans, self._folder.read([span.name for span in spans]), strict=True):
            try:
                yield json.loads(data)
            except ValueError as error:
                raise ConnectorFailure(f"{self._folder.path}/{span.name} is no file of a manifest: {error}") from error

    def _check_output(self, span: _Span) -> None:
        [content] = self._contents([span])
        if content.get("output") != self._output:
            where = self._folder.path.removesuffix(f"/{MANIFEST}")
            raise ConnectorFailure(
                f"file_output {where}: the folder has the files of another output. Give each a folder of its own, or remove "
                "what is there."
            )

    def _remove_outdated(self) -> None:
        """Remove the files whose steps a larger one has. They would count again if steps of that one were taken back."""
        if self._outdated:
            self._check_newest()
            self._folder.remove([span.name for span in self._outdated])
            self._outdated = []


def _spans_of(names: Iterable[str]) -> list[_Span]:
    matches = (_NAME.fullmatch(name) for name in names)
    return [_Span(int(match[1]), int(match[2] or match[1])) for match in matches if match is not None]


def _split_outdated(spans: Iterable[_Span]) -> tuple[list[_Span], list[_Span]]:
    """Return the files that count, in order, and those whose steps they cover."""
    counting: list[_Span] = []
    outdated: list[_Span] = []
    for span in sorted(spans, key=lambda each: (each.first, -each.last)):
        (outdated if counting and span.last <= counting[-1].last else counting).append(span)
    return counting, outdated


def _find_end_of_compacted(spans: Sequence[_Span]) -> int:
    """Return the index after the last file that has several steps."""
    return next((place for place in range(len(spans), 0, -1) if not spans[place - 1].is_one_step), 0)
