"""The end of each step in a file that an output appends to; a restart needs it to take back the steps that it will write again."""

from __future__ import annotations

import io
import os
from pathlib import Path

KEPT_STEPS = 10_000
"""The number of newest steps whose ends are always kept."""


class StepEnds:
    """The ends of the newest steps, each on disk when :meth:`add` returns.

    The first entry stands for the contents of the file before any known step. Without a path nothing outlives the process.
    Each run has a file of its own, so that a run that was replaced does not change what the later one knows.
    """

    def __init__(self, path: Path | None, epoch: int | None) -> None:
        """Begin with nothing.

        :param path: the file to keep the ends in; the epoch is added to its name
        :param epoch: the epoch of the run; None where there are no other runs
        """
        self._shared = path
        self._path = path if path is None or epoch is None else path.with_name(f"{path.name}.{epoch}")
        self._file: io.FileIO | None = None
        self._ends: list[tuple[int, int]] = []

    @property
    def exists(self) -> bool:
        """True if an earlier incarnation left anything."""
        return bool(self._find_files())

    def read(self) -> bool:
        """Read the ends that an earlier incarnation left. Return False if there are none."""
        files = self._find_files()
        if not files:
            return False
        self._ends = []
        for line in files[-1].read_text(errors="replace").splitlines():
            step, _, end = line.partition(" ")
            # A line that a crash cut off ends the known part.
            if not (step.removeprefix("-").isdigit() and end.isdigit()):
                break
            self._ends.append((int(step), int(end)))
        if self._ends:
            self._take_over()
        return bool(self._ends)

    def _take_over(self) -> None:
        """Write all known ends, and delete the files of earlier runs."""
        self._rewrite()
        for other in self._find_files():
            if other != self._path:
                other.unlink()

    def _find_files(self) -> list[Path]:
        """Return the files of this and of earlier runs, the newest last; one of an earlier release has no epoch."""
        shared = self._shared
        if shared is None or not shared.parent.is_dir():
            return []
        epochs = {
            int(suffix): path
            for path in shared.parent.iterdir()
            if path.name.startswith(f"{shared.name}.") and (suffix := path.name.removeprefix(f"{shared.name}.")).isdigit()
        }
        return [*([shared] if shared.exists() else []), *(epochs[epoch] for epoch in sorted(epochs))]

    def begin(self, step: int, end: int) -> None:
        """Forget all; the file ends at ``end`` (bytes) after ``step``."""
        self._ends = [(step, end)]
        self._take_over()

    @property
    def end(self) -> int:
        """The length that the file should have, in bytes."""
        return self._ends[-1][1] if self._ends else 0

    @property
    def step(self) -> int:
        """The newest step in the file."""
        return self._ends[-1][0] if self._ends else -1

    def add(self, step: int, end: int) -> None:
        """Record that the file, which is on disk, ends at ``end`` after ``step``."""
        self._ends.append((step, end))
        if len(self._ends) > 2 * KEPT_STEPS:
            self._ends = self._ends[-KEPT_STEPS:]
            self._rewrite()
        elif self._file is not None:
            self._file.write(f"{step} {end}\n".encode())
            os.fsync(self._file.fileno())

    def last_of(self, step: int) -> tuple[int, int] | None:
        """Return the end of the file after a step.

        :param step: the number of the step
        :returns: the newest step up to it that wrote something, and the length of the file after that step; None where that is
            no longer known
        """
        return next((entry for entry in reversed(self._ends) if entry[0] <= step), None)

    def rewind(self, step: int) -> None:
        """Forget the steps after ``step``; the end of the file after ``step`` is known."""
        self._ends = [entry for entry in self._ends if entry[0] <= step]
        self._rewrite()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _rewrite(self) -> None:
        """Write all known ends to a new file, and then replace the old one."""
        if self._path is None:
            return
        self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        aside = self._path.with_name(self._path.name + ".new")
        with aside.open("w") as file:
            file.writelines(f"{step} {end}\n" for step, end in self._ends)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._path)
        self._file = io.FileIO(self._path, "a")
