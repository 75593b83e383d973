"""The collection of a stream program's files on this machine: the program, the modules that it imports, and further given files."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from airflow_pipelines.program.stream_files import StreamFilesError, stream_files

StreamProgramSource: TypeAlias = str | os.PathLike[str] | Mapping[str, str]
"""A stream program as callers give it: the path of its file or folder, its text (a str with a line break), or all texts by path."""

TEXT_NAME: Final = "program.py"
"""The file name of a program that was given as a text."""
_MAIN: Final = "__main__.py"
_OURS: Final = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class StreamProgramArguments:
    """A stream program as it is sent; None leaves a part of a pipeline unchanged.

    :param files: the text of each file by its path, the program first
    :param arguments: the program's command line
    """

    files: Mapping[str, str] | None = None
    arguments: tuple[str, ...] | None = None

    @classmethod
    def collect(
        cls,
        program: StreamProgramSource | None,
        more: Sequence[str | os.PathLike[str]] = (),
        arguments: Sequence[str] | None = None,
    ) -> StreamProgramArguments:
        """Read the files of a stream program that a caller of the SDK gives.

        :param program: see :func:`collect_stream_files`; None for none
        :param more: see :func:`collect_stream_files`
        :param arguments: the program's command line
        :raises StreamFilesError: as :func:`collect_stream_files`, and when there are more files without a program
        """
        if isinstance(arguments, str):
            raise StreamFilesError(f"stream_arguments is the text {arguments!r}: give a list with one text for each argument")
        if program is None and more:
            raise StreamFilesError("stream_files are for a stream program: give stream_program as well")
        files = None if program is None else collect_stream_files(program, more)
        return cls(files, None if arguments is None else tuple(map(str, arguments)))

    def to_wire(self) -> dict[str, object]:
        """Return the fields of the REST contract that are not None."""
        files = {} if self.files is None else {"stream_files": dict(self.files)}
        return files | ({} if self.arguments is None else {"stream_arguments": list(self.arguments)})


def collect_stream_files(
    program: StreamProgramSource, more: Sequence[str | os.PathLike[str]] = (), folder: Path | None = None
) -> dict[str, str]:
    """Return the texts of a stream program's files by their paths, with the file that is executed first.

    A program that is a file brings along the modules and packages of its own folder that it imports, and those that they import, as
    far as ``import`` statements show. A folder must have a ``__main__.py``, and brings along all of its Python files.

    :param program: the path of the program's file or folder; or its text, which is a str with a line break; or the texts of all its
        files by path, in which case no file is read
    :param more: other files and folders of the program's folder that it needs: modules that are imported only by name, data,
        requirements; relative to the program's folder
    :param folder: the folder that the paths are relative to; default the current one
    :raises StreamFilesError: when a file is missing, is not a text, or lies outside of the program's folder, or when the program is
        too large
    """
    base = Path.cwd() if folder is None else folder
    if isinstance(program, Mapping):
        texts, root = dict(program), base
    elif isinstance(program, str) and "\n" in program:
        texts, root = {TEXT_NAME: program}, base
    else:
        path = base / Path(program).expanduser()
        texts, root = (_collect_folder(path), path) if path.is_dir() else (_collect_file(path), path.parent)
    for each in more:
        for path in _find_given_files(root, each):
            texts.setdefault(_make_relative(path, root), _text(path))
    return {file.path: file.text for file in stream_files(texts)}


def _collect_file(path: Path) -> dict[str, str]:
    if not path.is_file():
        raise StreamFilesError(
            f"there is no stream program {path}: give the path of its file or folder (a program's text is told from a path by "
            "its line breaks)"
        )
    texts = {path.name: _text(path)}
    waiting = [texts[path.name]]
    while waiting:
        for name in sorted(_find_imports(waiting.pop())):
            for module in _module(path.parent, name):
                place = _make_relative(module, path.parent)
                if place not in texts:
                    texts[place] = _text(module)
                    waiting.append(texts[place])
    return texts


def _collect_folder(folder: Path) -> dict[str, str]:
    if not (folder / _MAIN).is_file():
        raise StreamFilesError(
            f"the folder {folder} has no {_MAIN}, which is what is executed of a folder: give the path of a file instead"
        )
    return {_MAIN: _text(folder / _MAIN)} | {_make_relative(path, folder): _text(path) for path in _files_below(folder, "*.py")}


def _find_given_files(root: Path, each: str | os.PathLike[str]) -> Iterator[Path]:
    path = root / Path(each).expanduser()
    if path.is_dir():
        yield from _files_below(path, "*")
    elif path.is_file():
        yield path
    else:
        raise StreamFilesError(f"there is no file or folder {path}, which the stream program is to come with")


def _find_imports(text: str) -> set[str]:
    """Return the top-level names of the modules that a Python text imports.

    The result is empty if the text is not valid Python; the compiler gives a better message for that.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return set()
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.append(node.module)
    return {name.partition(".")[0] for name in names} - {_OURS}


def _module(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files of a module or package of a folder; a package is whole, since its modules import each other in many ways."""
    if (folder / name).is_dir():
        yield from _files_below(folder / name, "*.py")
    elif (folder / f"{name}.py").is_file():
        yield folder / f"{name}.py"


def _files_below(folder: Path, pattern: str) -> list[Path]:
    """Return the files below a folder in a stable order, without hidden ones and caches."""
    files = (path for path in folder.rglob(pattern) if path.is_file())
    return sorted(path for path in files if not any(_is_left_out(part) for part in path.relative_to(folder).parts))


def _is_left_out(part: str) -> bool:
    return part.startswith(".") or part == "__pycache__"


def _make_relative(path: Path, root: Path) -> str:
    try:
        return Path(os.path.normpath(path)).relative_to(os.path.normpath(root)).as_posix()
    except ValueError:
        raise StreamFilesError(
            f"{path} is not in the program's folder {root}: put it there, for the program runs in a copy of that folder"
        ) from None


def _text(path: Path) -> str:
    try:
        # Line ends stay: they are part of texts in the program.
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StreamFilesError(
            f"{path} is no text in UTF-8 (byte {error.start}): a stream program comes with texts only; have it read other data "
            "through a source"
        ) from error
