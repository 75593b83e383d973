"""Unpacking of zip and tar files. No member is written outside of the target folder."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
from pathlib import Path

from airflow_pipelines.streams.python_environment.needs import Archive, PythonEnvironmentError


def unpack(archive: Archive, root: Path) -> None:
    """Unpack an archive to its target.

    :param archive: the file, and the folder to which it is unpacked
    :param root: the folder that contains the target
    :raises PythonEnvironmentError: if the file is not an archive, is damaged, or has members outside of itself
    """
    folder = root / archive.target
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # A tar file that ends with a zip file looks like a zip file, so try tar first.
        if tarfile.is_tarfile(archive.path):
            with tarfile.open(archive.path) as packed:
                packed.extractall(folder, filter="data")
        elif zipfile.is_zipfile(archive.path):
            _unzip(archive.path, folder)
        else:
            raise PythonEnvironmentError(f"{str(archive.path)!r} is no archive that can be unpacked: zip and tar are.")
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise PythonEnvironmentError(
            f"The archive {str(archive.path)!r} cannot be unpacked: {type(error).__name__}: {error}"
        ) from error


def _unzip(path: Path, folder: Path) -> None:
    """Extract a zip file like :meth:`zipfile.ZipFile.extractall`, but with links and with the execute permission.

    Interpreters need both.
    """
    top = Path(os.path.realpath(folder))
    with zipfile.ZipFile(path) as packed:
        for member in packed.infolist():
            mode = member.external_attr >> 16
            place = folder / member.filename
            _check_inside(top, place.parent, member.filename)
            if stat.S_ISLNK(mode):
                target = packed.read(member).decode()
                _check_inside(top, place.parent / target, member.filename)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(target)
                continue
            _check_inside(top, place, member.filename)
            written = Path(packed.extract(member, folder))
            if mode & stat.S_IXUSR and written.is_file():
                written.chmod(written.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _check_inside(top: Path, place: Path, name: str) -> None:
    # Resolves the links that were unpacked so far.
    if not Path(os.path.realpath(place)).is_relative_to(top):
        raise zipfile.BadZipFile(f"its member {name!r} leads out of it")
