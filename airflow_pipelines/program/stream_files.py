"""The files of a stream program: the limits of their paths and sizes, and writing them to a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from airflow_pipelines.program.sources import SourceFile

MAX_FILES: Final = 200
MAX_PATH: Final = 200
"""The maximum number of characters of a path."""
MAX_BYTES: Final = 4 * 2**20
"""The maximum number of bytes of all texts of a program together, in UTF-8."""

_PART: Final = re.compile(r'[^/\\:*?"<>|\x00-\x1f\x7f\ud800-\udfff]+')
"""The pattern of names that every file system accepts."""
PATH: Final = re.compile(f"{_PART.pattern}(/{_PART.pattern})*")
"""The pattern of paths of such names. Not every such path is valid: a name has no spaces around it and is not '.' or '..'."""


class StreamFilesError(ValueError):
    """The error for files of a stream program that cannot be used; the message has the file and the reason."""


class StreamFilesTooLarge(StreamFilesError):
    """The error for files of a stream program that have too many bytes."""


def stream_files(texts: Mapping[str, str]) -> tuple[SourceFile, ...]:
    """Check the files of a stream program and return them.

    :param texts: the text of each file by its path, the program first and then the modules and files that it reads
    :return: the files in that order
    :raises StreamFilesError: when a path is no relative path within the program's folder, two paths cannot be in one folder,
        the first is no Python file, or the files are too many or too large
    """
    if len(texts) > MAX_FILES:
        raise StreamFilesError(f"a stream program has at most {MAX_FILES} files, this one has {len(texts)}")
    for path in texts:
        _check_path(path)
    _check_places(list(texts))
    main = next(iter(texts), None)
    if main is not None and not main.endswith(".py"):
        raise StreamFilesError(
            f"the first file of a stream program is the one that is executed, but {main!r} does not end with .py"
        )
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts.values())
    if size > MAX_BYTES:
        raise StreamFilesTooLarge(
            f"the files of a stream program have at most {MAX_BYTES} bytes together, these have {size}: have the program read data "
            "through a source, or give packages as its requirements"
        )
    return tuple(SourceFile(path, text) for path, text in texts.items())


def write_stream_files(files: Iterable[SourceFile], folder: Path) -> None:
    """Write the files of a stream program, unchanged.

    :param files: the files
    :param folder: the folder to write to; created if it does not exist
    :raises StreamFilesError: when a path leads out of the folder; files before that one are written then
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        path = PurePosixPath(file.path)
        if not path.parts or path.is_absolute() or ".." in path.parts:
            raise StreamFilesError(f"{file.path!r} cannot be the path of a file of a program: it leads out of the program's folder")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.text, encoding="utf-8", newline="")


def _check_path(path: str) -> None:
    parts = path.split("/")
    if len(path) > MAX_PATH:
        raise StreamFilesError(
            f"a path of a stream program's file has at most {MAX_PATH} characters: {path[:60]!r}... has {len(path)}"
        )
    if any(part in (".", "..") or part != part.strip() or not _PART.fullmatch(part) for part in parts):
        raise StreamFilesError(
            f"{path!r} is no path of a stream program's file: give one that is relative to the program's folder, such as "
            "'program.py' or 'package/module.py', without '.', '..' and special characters"
        )


def _check_places(paths: list[str]) -> None:
    """Raise if two paths cannot both be in one folder, also on file systems that ignore case."""
    seen: dict[str, str] = {}
    for path in paths:
        folded = path.casefold()
        if folded in seen:
            raise StreamFilesError(
                f"the files {seen[folded]!r} and {path!r} of a stream program have the same name but for upper and lower case"
            )
        seen[folded] = path
    for path in paths:
        folder = path.casefold()
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            if folder in seen:
                raise StreamFilesError(f"{seen[folder]!r} cannot be a file of a stream program and the folder of {path!r}")
