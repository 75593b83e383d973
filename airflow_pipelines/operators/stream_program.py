"""The stream program of a task: the location of its files, and the part of it that is a template."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from airflow.sdk import DAG

from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, StreamProgramSource, collect_stream_files


class StreamProgramTexts(Mapping[str, str]):
    """The texts of a stream program by path.

    Airflow renders the content of dictionaries, but not of this mapping, because Jinja would misread Python's braces.

    :param texts: the texts
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def __getitem__(self, path: str) -> str:
        return self._texts[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"<stream program of {', '.join(self._texts) or 'no files'}>"


def kept_from_templates(program: StreamProgramSource | None) -> StreamProgramSource | None:
    """Return the value of a template field for a program: a path is a template, the texts of a mapping are not.

    :param program: the program as the DAG gives it
    """
    return StreamProgramTexts(program) if isinstance(program, Mapping) else program


def read_stream_program(
    program: StreamProgramSource | None, more: Sequence[str], arguments: Sequence[str] | None, dag: DAG | None
) -> StreamProgramArguments:
    """Read the files of a task's program.

    :param program: the program, rendered
    :param more: other files that it needs
    :param arguments: its command line
    :param dag: the task's DAG; a path is relative to its folder, or to an entry of its ``template_searchpath``
    :raises StreamFilesError: when a file is missing or cannot be used
    """
    if program is None or isinstance(program, Mapping) or (isinstance(program, str) and "\n" in program):
        return StreamProgramArguments.collect(program, more, arguments)
    folder = _folder_of(program, [] if dag is None else [dag.folder, *_list_search_paths(dag.template_searchpath)])
    return StreamProgramArguments.collect(collect_stream_files(program, more, folder), (), arguments)


def _folder_of(program: str | os.PathLike[str], folders: Sequence[str]) -> Path:
    """Return the first folder that has the program, or the first of all if none has it, for the message."""
    paths = [Path(folder) for folder in folders] or [Path.cwd()]
    return next((path for path in paths if (path / program).exists()), paths[0])


def _list_search_paths(folders: str | Iterable[str] | None) -> list[str]:
    if folders is None:
        return []
    return [folders] if isinstance(folders, str) else list(folders)
