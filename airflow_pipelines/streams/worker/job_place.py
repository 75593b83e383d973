"""The surroundings that a function of a program sees in its process, reproduced for a task that runs elsewhere."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LOG_FORMAT = "%(levelname)s %(name)s: %(message)s"
_MAIN = "__main__"


@dataclass(frozen=True, slots=True)
class JobPlace:
    """The surroundings of a program.

    :param folder: the current folder
    :param folders: the folders of the program's files
    :param environment: the environment variables
    """

    folder: str
    folders: tuple[str, ...]
    environment: Mapping[str, str]

    @staticmethod
    def of_this_process(folders: tuple[str, ...]) -> JobPlace:
        """Return the surroundings of a program that runs in this process.

        :param folders: the folders of its files
        """
        return JobPlace(str(Path.cwd()), folders, dict(os.environ))


@dataclass(frozen=True, slots=True)
class Printed:
    """The text that was printed.

    :param stdout: the text printed to ``stdout``
    :param stderr: the text printed to ``stderr``, and logged
    """

    stdout: io.StringIO
    stderr: io.StringIO


@contextlib.contextmanager
def in_place(place: JobPlace) -> Iterator[Printed]:
    """Make this process look like that of a program, until the context ends. The process may serve others before and after.

    :param place: the surroundings that the program shall see
    :returns: the text that it prints
    """
    printed = Printed(io.StringIO(), io.StringIO())
    main, paths, variables, folder = sys.modules.get(_MAIN), list(sys.path), dict(os.environ), str(Path.cwd())
    modules = set(sys.modules)
    with _logged_to(printed.stderr), contextlib.redirect_stdout(printed.stdout), contextlib.redirect_stderr(printed.stderr):
        try:
            _set_variables(place.environment)
            os.chdir(place.folder)
            sys.path[:0] = place.folders
            importlib.invalidate_caches()
            yield printed
        finally:
            if main is not None:
                sys.modules[_MAIN] = main
            sys.path[:] = paths
            _forget_modules(place.folders, sys.modules.keys() - modules)
            os.chdir(folder)
            _set_variables(variables)


def _set_variables(variables: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name not in variables]:
        del os.environ[name]
    for name, value in variables.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _forget_modules(folders: tuple[str, ...], names: Iterable[str]) -> None:
    """Remove the program's modules from this process: another program may have modules of the same names."""
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        is_of_program = file and any(folder and Path(file).is_relative_to(folder) for folder in folders)
        if is_of_program and not name.startswith("airflow_pipelines"):
            del sys.modules[name]


@contextlib.contextmanager
def _logged_to(stream: io.StringIO) -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
