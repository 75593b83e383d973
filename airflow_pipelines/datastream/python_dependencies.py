"""The Python dependencies of a program, and their installation for a program that runs in its own process."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from airflow_pipelines.streams.python_environment.environment import PythonEnvironment, make_environment
from airflow_pipelines.streams.python_environment.needs import Archive, CachedFile, PythonNeeds, Requirements

_log = logging.getLogger("airflow_pipelines.datastream")


@dataclass
class PythonDependencies:
    """The Python dependencies of a program besides itself.

    :param files: modules, packages and archives of packages that can be imported
    :param requirements: the file of required packages, and optionally a folder with the packages
    :param archives: archives to unpack for its functions, each with the name of its folder
    :param executable: the interpreter for its functions
    :param cached_files: files that its functions find by names
    """

    files: list[Path] = field(default_factory=list)
    requirements: tuple[Path, Path | None] | None = None
    archives: list[tuple[Path, str]] = field(default_factory=list)
    executable: str | None = None
    cached_files: list[CachedFile] = field(default_factory=list)

    def needs(self) -> PythonNeeds:
        """Return the description of a Python environment for the program.

        :returns: the description, with the current text of the requirements
        """
        return PythonNeeds(
            requirements=None if self.requirements is None else Requirements.read(*self.requirements),
            archives=tuple(Archive(path, target) for path, target in self.archives),
            files=tuple(self.files),
            executable=self.executable,
            cached_files=tuple(self.cached_files),
        )

    @contextlib.contextmanager
    def in_this_process(self, cache: Path | None = None) -> Iterator[None]:
        """Provide the dependencies to this process, as far as a running process can take them.

        Modules and packages stay importable. If there are archives or registered files, the working folder is one with them while
        the context lasts.

        :param cache: folder for environments; None for one in the user's cache folder
        :raises PythonEnvironmentError: if packages cannot be installed, or an archive cannot be unpacked
        """
        needs = self.needs()
        paths = [file.parent if file.suffix == ".py" else file for file in needs.files]
        environment = None
        if needs.requirements is not None or needs.has_contents:
            # Files are imported from their original place, so that a debugger finds them.
            without_files = PythonNeeds(needs.requirements, needs.archives, cached_files=needs.cached_files)
            environment = make_environment(without_files, cache or _find_user_cache())
            paths += environment.packages()
        # The first entry wins: files of the program take precedence over packages.
        sys.path[:0] = [str(path) for path in dict.fromkeys(paths) if str(path) not in sys.path]
        self._warn_of_what_stays(environment)
        if environment is None or environment.archives is None:
            yield
        else:
            with _enter_working_folder(environment):
                yield

    def _warn_of_what_stays(self, environment: PythonEnvironment | None) -> None:
        if self.executable is not None:
            _warn_once(
                f"set_python_executable({self.executable!r}) has no effect here: a program that runs in its own process runs with"
                f" the interpreter of that process, {sys.executable!r}."
            )
        for name, version in _find_too_late([] if environment is None else environment.packages()):
            _warn_once(
                f"The package {name!r} {version} is required and was installed, but this process has imported another one already,"
                f" which stays until it ends: run the program with an interpreter that has {name}=={version}."
            )


def existing(parameter: str, path: str) -> Path:
    """Return the absolute path of a file or folder that exists.

    :param parameter: name of the parameter, for the message
    :param path: the path that the program passed
    :returns: the path
    :raises FileNotFoundError: if there is nothing
    """
    absolute = Path(path).absolute()
    if not absolute.exists():
        raise FileNotFoundError(f"{parameter}: there is no {str(absolute)!r}")
    return absolute


def _find_too_late(packages: list[Path]) -> Iterator[tuple[str, str]]:
    """Yield name and version of installed packages of which this process has already imported another copy."""
    places = [str(folder) for folder in packages]
    for distribution in importlib.metadata.distributions(path=places):
        tops = {Path(str(file)).parts[0].removesuffix(".py") for file in distribution.files or () if file.suffix == ".py"}
        imported = [getattr(sys.modules[top], "__file__", None) for top in sorted(tops) if top in sys.modules]
        if any(file is not None and not Path(file).is_relative_to(place) for file in imported for place in places):
            yield distribution.metadata["Name"], distribution.version


@contextlib.contextmanager
def _enter_working_folder(environment: PythonEnvironment) -> Iterator[None]:
    before = Path.cwd()
    folder = environment.make_working_folder(Path(tempfile.gettempdir()))
    _log.info("Functions run in the folder %s, which has the unpacked archives.", folder)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        left = sorted(path.name for path in folder.iterdir() if not path.is_symlink())
        if left:
            _log.warning("The program has written %s to its working folder, which is kept: %s", ", ".join(left), folder)
        else:
            shutil.rmtree(folder)


_SAID: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _SAID:
        _SAID.add(message)
        _log.warning("%s", message)


def _find_user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-pipelines" / "environments"
