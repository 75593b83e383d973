"""The needs of a program for its Python environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError

CACHED_FILES = "cached-files"
"""The folder of registered files below the working folder of functions."""
_NAMES_A_FILE = re.compile(r"\s*(?:(-r|--requirement)|(-c|--constraint))[\s=]*(?P<file>[^\s#].*?)(?:\s+#.*)?$")
_URL = re.compile(r"[a-z][a-z+]+:", re.IGNORECASE)


class PythonEnvironmentError(StreamProgramError):
    """An error of the creation of a program's Python environment. The message says which part failed, and why."""


@dataclass(frozen=True)
class Requirements:
    """The packages that functions import.

    :param text: the text of a file of requirements for pip
    :param constraints: the text of a file of constraints for pip
    :param cached_packages: a folder with the packages, for installing without an index; None for the usual index
    """

    text: str
    constraints: str = ""
    cached_packages: Path | None = None

    @staticmethod
    def read(file: Path, cached_packages: Path | None = None) -> Requirements:
        """Read a file of requirements, with the files that it names.

        :param file: the file
        :param cached_packages: a folder with the packages
        :returns: the requirements, which depend on no file but local packages
        :raises PythonEnvironmentError: if a file that it names does not exist, or names itself
        """
        constraints: list[str] = []
        text = _expand(file, constraints, ())
        return Requirements(text, "".join(constraints), cached_packages)


@dataclass(frozen=True)
class Archive:
    """A file that is unpacked for functions.

    :param path: a zip or tar file
    :param target: the folder to which it is unpacked, below the working folder of the functions
    """

    path: Path
    target: str

    def __post_init__(self) -> None:
        parts = Path(self.target).parts
        if not parts or Path(self.target).is_absolute() or ".." in parts:
            raise PythonEnvironmentError(
                f"The archive {str(self.path)!r} cannot be unpacked to {self.target!r}: name a folder below the working folder,"
                " such as 'data'."
            )


@dataclass(frozen=True)
class CachedFile:
    """A file or folder that functions find by a name.

    :param path: the file or folder
    :param name: the name
    :param is_executable: True if functions execute it
    """

    path: Path
    name: str
    is_executable: bool = False

    def __post_init__(self) -> None:
        if not self.name or self.name in (".", "..") or "/" in self.name or "\0" in self.name:
            raise PythonEnvironmentError(
                f"The file {str(self.path)!r} cannot have the name {self.name!r}: name it as a single file, such as 'rates.csv'."
            )


@dataclass(frozen=True)
class PythonNeeds:
    """The needs of a program for its Python environment.

    :param requirements: the packages to install; None for none
    :param archives: the archives to unpack
    :param files: modules, and folders and archives (zip, wheel, egg) of modules and packages, in the order of imports
    :param executable: the interpreter: a path, a command, or a path into an unpacked archive; None for the one that runs this
    :param cached_files: files that functions find by names
    """

    requirements: Requirements | None = None
    archives: tuple[Archive, ...] = ()
    files: tuple[Path, ...] = ()
    executable: str | None = None
    cached_files: tuple[CachedFile, ...] = ()

    def to_json(self, folder: Path) -> dict[str, Any]:
        """Return the needs as an object for JSON.

        :param folder: the folder of the program's files; paths within it are written relative to it
        :returns: an object that is empty if there are no needs
        """

        def path(file: Path) -> str:
            return str(file.relative_to(folder) if file.is_relative_to(folder) else file)

        parts: dict[str, Any] = {}
        if self.requirements is not None:
            packages = self.requirements.cached_packages
            parts["requirements"] = {
                "text": self.requirements.text,
                "constraints": self.requirements.constraints,
                "cached_packages": None if packages is None else path(packages),
            }
        if self.archives:
            parts["archives"] = [[path(archive.path), archive.target] for archive in self.archives]
        if self.files:
            parts["files"] = [path(file) for file in self.files]
        if self.executable is not None:
            parts["executable"] = self.executable
        if self.cached_files:
            parts["cached_files"] = [[path(file.path), file.name, file.is_executable] for file in self.cached_files]
        return parts

    @classmethod
    def from_json(cls, parts: Mapping[str, Any], folder: Path) -> PythonNeeds:
        """Read the needs that :meth:`to_json` wrote.

        :param parts: the object
        :param folder: the folder of the program's files, to which relative paths refer
        :returns: the needs
        """
        requirements = parts.get("requirements")
        required = None
        if requirements is not None:
            packages = requirements["cached_packages"]
            required = Requirements(
                requirements["text"], requirements["constraints"], None if packages is None else folder / packages
            )
        return cls(
            requirements=required,
            archives=tuple(Archive(folder / path, target) for path, target in parts.get("archives", ())),
            files=tuple(folder / path for path in parts.get("files", ())),
            executable=parts.get("executable"),
            cached_files=tuple(CachedFile(folder / path, *named) for path, *named in parts.get("cached_files", ())),
        )

    def __post_init__(self) -> None:
        targets = [archive.target for archive in self.archives]
        twice = sorted({target for target in targets if targets.count(target) > 1})
        if twice:
            raise PythonEnvironmentError(f"Two archives are unpacked to {twice[0]!r}: give each a target of its own.")
        names = [file.name for file in self.cached_files]
        same = sorted({name for name in names if names.count(name) > 1})
        if same:
            raise PythonEnvironmentError(f"Two files are registered with the name {same[0]!r}: give each a name of its own.")
        if self.cached_files and CACHED_FILES in (Path(target).parts[0] for target in targets):
            raise PythonEnvironmentError(f"An archive cannot be unpacked to {CACHED_FILES!r}: registered files are there.")

    @property
    def has_contents(self) -> bool:
        """True if functions find something in their working folder."""
        return bool(self.archives or self.cached_files)


def _expand(file: Path, constraints: list[str], around: tuple[Path, ...]) -> str:
    """Return the text of a file with the files that it names inserted. Their paths are relative to its folder."""
    if file in around:
        raise PythonEnvironmentError(f"The file of requirements {str(file)!r} names itself.")
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        by = f", which {str(around[-1])!r} names," if around else ""
        raise PythonEnvironmentError(f"The file of requirements {str(file)!r}{by} cannot be read: {error}") from None
    text = []
    for line in lines:
        named = _NAMES_A_FILE.match(line)
        if named is None or _URL.match(named["file"]):
            text.append(f"{line}\n")
        elif named[1]:
            text.append(_expand(file.parent / named["file"], constraints, (*around, file)))
        else:
            constraints.append(_expand(file.parent / named["file"], constraints, (*around, file)))
    return "".join(text)
