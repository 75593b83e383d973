"""What a program needs of Python besides itself: files, packages and an interpreter."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from airflow_pipelines.streams.errors import StreamProgramError

_PIP_TIMEOUT_S = 600
_SHOWN_LINES = 15


class RequirementsError(StreamProgramError):
    """The packages that a program requires cannot be installed."""


@dataclass(frozen=True)
class Requirements:
    """Packages that a program requires.

    :param file: a file as pip reads it
    :param cached_packages: folder with the packages, for installing without a network; None for the usual index
    """

    file: Path
    cached_packages: Path | None = None

    def install(self, root: Path) -> Path:
        """Install the packages, unless the same ones are installed already.

        :param root: folder for all installations, each in a folder named by what was required
        :returns: the folder with the packages
        :raises RequirementsError: when pip fails; with the end of what it said
        """
        folder = root / self._fingerprint()
        if folder.exists():
            return folder
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=".installing-") as temporary:
            self._pip_install(Path(temporary) / "packages")
            try:
                (Path(temporary) / "packages").rename(folder)
            except OSError:
                # Another process has installed the same meanwhile.
                if not folder.exists():
                    raise
        return folder

    def _fingerprint(self) -> str:
        packages = [] if self.cached_packages is None else sorted(path.name for path in self.cached_packages.iterdir())
        content = "\0".join([sys.version, sys.platform, self.file.read_text(), *packages])
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def _pip_install(self, folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder)]
        if self.cached_packages is not None:
            command += ["--no-index", "--find-links", str(self.cached_packages)]
        folder.mkdir()
        try:
            subprocess.run(
                [*command, "--requirement", str(self.file)], check=True, capture_output=True, text=True, timeout=_PIP_TIMEOUT_S
            )
        except subprocess.CalledProcessError as error:
            said = "\n".join(f"{error.stdout}{error.stderr}".strip().splitlines()[-_SHOWN_LINES:])
            raise RequirementsError(f"The packages of {str(self.file)!r} cannot be installed; pip said:\n{said}") from None
        except subprocess.TimeoutExpired:
            raise RequirementsError(f"Installing the packages of {str(self.file)!r} took more than {_PIP_TIMEOUT_S} s") from None


@dataclass
class PythonDependencies:
    """What a program needs of Python besides itself.

    :param files: modules, packages and archives of packages that can be imported
    :param requirements: packages that are installed
    :param archives: files that are unpacked for its functions, and the name of the folder for each
    :param executable: the interpreter for its functions
    """

    files: list[Path] = field(default_factory=list)
    requirements: Requirements | None = None
    archives: list[tuple[Path, str]] = field(default_factory=list)
    executable: str | None = None

    def make_importable(self, cache: Path | None = None) -> None:
        """Let this process import the files and the required packages.

        :param cache: folder for installed packages; None for one in the user's cache folder
        :raises RequirementsError: when packages cannot be installed
        """
        folders = [file.parent if file.suffix == ".py" else file for file in self.files]
        if self.requirements is not None:
            folders.append(self.requirements.install(cache or _user_cache()))
        # What is first wins: a file of the program before a package.
        sys.path[:0] = [str(folder) for folder in folders if str(folder) not in sys.path]


def existing(parameter: str, path: str) -> Path:
    """The absolute path of a file or folder that exists.

    :param parameter: name of the parameter, for the message
    :param path: what the program passed
    :returns: the path
    :raises FileNotFoundError: when there is nothing
    """
    found = Path(path).absolute()
    if not found.exists():
        raise FileNotFoundError(f"{parameter}: there is no {str(found)!r}")
    return found


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-pipelines" / "requirements"
