"""Creation of the Python environment of a program, or reuse of one that was made of the same contents."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tenacity import retry_if_exception_type

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.streams.python_environment.archives import unpack
from airflow_pipelines.streams.python_environment.contents import Fingerprint, copy_to
from airflow_pipelines.streams.python_environment.installing import (
    install,
    make_virtual_environment,
    packages_of,
    packages_of_this_process,
)
from airflow_pipelines.streams.python_environment.needs import CACHED_FILES, CachedFile, PythonEnvironmentError, PythonNeeds

INSTALL_SECONDS = 600.0
_LAYOUT = "1"
_VIRTUAL, _ARCHIVES, _FILES = "python", "archives", "files"


@dataclass(frozen=True)
class PythonEnvironment:
    """An environment that is ready. It is never written to again.

    :param executable: the interpreter to start
    :param paths: the first entries of its ``sys.path``
    :param archives: the folder with the unpacked archives and registered files; None without any
    """

    executable: Path
    paths: tuple[Path, ...]
    archives: Path | None

    def make_working_folder(self, parent: Path) -> Path:
        """Create a folder to run functions in. It is empty but for links to the unpacked archives.

        :param parent: the folder in which it is created
        :returns: the folder, which belongs to the caller
        """
        folder = Path(tempfile.mkdtemp(dir=parent, prefix="work-"))
        self.link_archives(folder)
        return folder

    def link_archives(self, folder: Path) -> None:
        """Create links to the unpacked archives in a folder in which functions run.

        :param folder: the folder
        """
        if self.archives is not None:
            for unpacked in self.archives.iterdir():
                (folder / unpacked.name).symlink_to(unpacked)

    def packages(self) -> list[Path]:
        """Return the folders of the environment's own packages.

        :returns: folders; none if nothing was installed
        """
        return sorted(self.executable.parents[1].glob("lib/python*/site-packages")) if _is_virtual(self.executable) else []


def make_environment(needs: PythonNeeds, cache: Path, limit_seconds: float = INSTALL_SECONDS) -> PythonEnvironment:
    """Create the environment of a program, unless one of the same contents exists.

    Several processes may ask for the same environment: one creates it, and the others wait. If a process is killed, it leaves
    nothing that others would take for an environment.

    :param needs: the needs of the program
    :param cache: the folder for all environments; created if it does not exist
    :param limit_seconds: the maximum number of seconds for installing packages, and for waiting for another process
    :returns: the environment
    :raises PythonEnvironmentError: if it cannot be created; the message has the reason
    """
    _check(needs)
    cache = cache.absolute()
    cache.mkdir(parents=True, exist_ok=True)
    ready = cache / _compute_fingerprint(needs)
    if not _is_usable(ready, needs):
        with _hold_lock(ready.with_suffix(".lock"), limit_seconds):
            if not _is_usable(ready, needs):
                _make(needs, ready, limit_seconds)
    return _environment(ready.resolve(), needs)


def _check(needs: PythonNeeds) -> None:
    folder = None if needs.requirements is None else needs.requirements.cached_packages
    for what, path in [
        *(("archive", archive.path) for archive in needs.archives),
        *(("Python file", file) for file in needs.files),
        *(("file", file.path) for file in needs.cached_files),
        *([] if folder is None else [("folder of packages", folder)]),
    ]:
        if not path.exists():
            raise PythonEnvironmentError(f"The {what} {str(path)!r} is not there.")


def _compute_fingerprint(needs: PythonNeeds) -> str:
    fingerprint = Fingerprint()
    # A virtual environment names the interpreter that it was made with, and the packages that it sees.
    for text in (_LAYOUT, sys.version, sys.executable, *packages_of_this_process(), str(needs.executable)):
        fingerprint.text(text)
    outside = None if needs.executable is None else shutil.which(needs.executable)
    if outside is not None:
        fingerprint.text(f"{Path(outside).resolve()} {Path(outside).stat().st_mtime_ns}")
    if needs.requirements is not None:
        for text in (needs.requirements.text, needs.requirements.constraints):
            fingerprint.text(text)
        # Suitable packages of this process are not installed again, so an environment is valid only while they are unchanged.
        for folder in packages_of_this_process():
            fingerprint.text(str(Path(folder).stat().st_mtime_ns if Path(folder).is_dir() else None))
        if needs.requirements.cached_packages is not None:
            fingerprint.path(needs.requirements.cached_packages)
    for archive in needs.archives:
        fingerprint.text(f"archive {archive.target}")
        fingerprint.path(archive.path)
    for file in needs.files:
        fingerprint.text(f"importable {file.name}")
        fingerprint.path(file)
    for cached in needs.cached_files:
        fingerprint.text(f"cached {cached.name} {cached.is_executable}")
        fingerprint.path(cached.path)
    return fingerprint.digest()


def _is_usable(ready: Path, needs: PythonNeeds) -> bool:
    # The link may dangle if somebody cleaned the cache, and the interpreter may have been uninstalled.
    return ready.is_dir() and _environment(ready.resolve(), needs).executable.exists()


def _environment(folder: Path, needs: PythonNeeds) -> PythonEnvironment:
    executable = folder / _VIRTUAL / "bin" / "python" if _needs_virtual(needs) else Path(sys.executable)
    return PythonEnvironment(executable, _import_paths(folder, needs), folder / _ARCHIVES if needs.has_contents else None)


def _needs_virtual(needs: PythonNeeds) -> bool:
    return needs.requirements is not None or needs.executable is not None


def _is_virtual(executable: Path) -> bool:
    return executable.parents[1].name == _VIRTUAL


def _import_paths(folder: Path, needs: PythonNeeds) -> tuple[Path, ...]:
    """Return the import paths. A module is found in its folder; folders and archives are import paths themselves."""
    places = [(folder / _FILES / str(number), file) for number, file in enumerate(needs.files)]
    return tuple(place if file.suffix == ".py" else place / file.name for place, file in places)


def _make(needs: PythonNeeds, ready: Path, limit_seconds: float) -> None:
    """Create the environment in a folder that stays where it is, and then link the name to it.

    The folder cannot be moved, since scripts name their interpreter.
    """
    for abandoned in ready.parent.glob(f".{ready.name}-*"):
        abandoned.unlink()
    for abandoned in ready.parent.glob(f"{ready.name}-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=ready.parent, prefix=f"{ready.name}-"))
    try:
        for archive in needs.archives:
            unpack(archive, folder / _ARCHIVES)
        for cached in needs.cached_files:
            _copy_cached(cached, folder / _ARCHIVES / CACHED_FILES / cached.name)
        for number, file in enumerate(needs.files):
            copy_to(file, folder / _FILES / str(number) / file.name)
        if _needs_virtual(needs):
            _make_virtual(needs, folder, limit_seconds)
        _publish(folder, ready)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _copy_cached(cached: CachedFile, target: Path) -> None:
    copy_to(cached.path, target)
    if cached.is_executable and target.is_file():
        target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _make_virtual(needs: PythonNeeds, folder: Path, limit_seconds: float) -> None:
    seen = packages_of_this_process()
    executable = Path(sys.executable)
    if needs.executable is not None:
        executable = _find_executable(needs.executable, folder / _ARCHIVES)
        seen = [*packages_of(executable), *seen]
    python = make_virtual_environment(folder / _VIRTUAL, executable, seen)
    if needs.requirements is not None:
        install(needs.requirements, python, limit_seconds)


def _find_executable(given: str, archives: Path) -> Path:
    inside = archives / given
    executable = str(inside) if inside.is_file() else shutil.which(given)
    if executable is None:
        raise PythonEnvironmentError(
            f"There is no Python executable {given!r}: neither in an archive of the program, nor as a path, nor as a command."
        )
    return Path(executable).absolute()


def _publish(folder: Path, ready: Path) -> None:
    name = ready.with_name(f".{folder.name}")
    name.symlink_to(folder.name)
    name.replace(ready)


@contextlib.contextmanager
def _hold_lock(file: Path, limit_seconds: float) -> Iterator[None]:
    """Hold the lock, so that only one process at a time creates an environment. If a process is killed, its lock is released."""
    attempts = RetryPolicy(first_wait_s=0.1, longest_wait_s=0.1, limit_s=limit_seconds).retrying(retry_if_exception_type(OSError))
    with file.open("w") as opened:
        try:
            attempts(fcntl.flock, opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PythonEnvironmentError(
                f"Another process has been making the same Python environment in {str(file.parent)!r} for more than"
                f" {limit_seconds:g} s. If it hangs, end it and start again."
            ) from None
        yield
