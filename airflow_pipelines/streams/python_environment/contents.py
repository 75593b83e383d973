"""The files of an environment: walked, copied, and distinguished by their contents."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 1 << 20
_LEFT_OUT = "__pycache__"


class Fingerprint:
    """A fingerprint of contents. Parts are separated, so that different lists of parts have different fingerprints."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def text(self, text: str) -> None:
        """Add a text.

        :param text: the text
        """
        data = text.encode("utf-8", "surrogateescape")
        self._hash.update(b"%d:" % len(data) + data)

    def path(self, path: Path) -> None:
        """Add a file, or all files of a folder with their relative paths.

        :param path: the file or folder
        """
        self.text("folder" if path.is_dir() else "file")
        for place, file in files_below(path):
            self.text(place)
            self.text(f"{file.stat().st_size} {os.access(file, os.X_OK)}")
            with file.open("rb") as opened:
                while block := opened.read(_BLOCK):
                    self._hash.update(block)

    def digest(self) -> str:
        """Return the digest of the contents.

        :returns: 32 hexadecimal digits
        """
        return self._hash.hexdigest()[:32]


def files_below(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder, in an order that does not depend on the file system. Links are followed, but not in circles.

    :param path: the folder; a file stands for itself
    :returns: the path of each file relative to the folder, and its path
    """
    if not path.is_dir():
        yield path.name, path
        return
    seen = set()
    for folder, folders, names in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if name != _LEFT_OUT)
        for name in sorted(names):
            file = Path(folder, name)
            if file.is_file():
                yield str(file.relative_to(path)), file


def copy_to(path: Path, target: Path) -> None:
    """Copy a file, or the files that :func:`files_below` finds in a folder.

    :param path: the file or folder
    :param target: the path of the copy
    """
    if not path.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        return
    target.mkdir(parents=True)
    for place, file in files_below(path):
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target / place)
