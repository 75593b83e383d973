"""Creation of a virtual environment that sees this project, and installation of packages into it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from airflow_pipelines.streams.python_environment.needs import PythonEnvironmentError, Requirements

_SHOWN_LINES = 15
_CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]+@")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ELSEWHERE = ("PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "UV_TARGET", "UV_PREFIX")
"""The environment variables that would redirect an installation to another place."""
_ASK = (
    "import json, site, sys;"
    "print(json.dumps([sys.implementation.name, list(sys.version_info[:3]), sys.version, site.getsitepackages()]))"
)


def packages_of_this_process() -> list[str]:
    """Return the folders of the packages of this process, including this project.

    :returns: folders
    """
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    folders.append(str(Path(__file__).resolve().parents[3]))
    return list(dict.fromkeys(folders))


def packages_of(executable: Path) -> list[str]:
    """Return the folders of the packages of another interpreter.

    :param executable: the interpreter
    :returns: folders
    :raises PythonEnvironmentError: if it cannot run functions of this process
    """
    try:
        said = subprocess.run([executable, "-c", _ASK], check=True, capture_output=True, text=True, timeout=60).stdout
        implementation, version, _, folders = json.loads(said)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip()
        raise PythonEnvironmentError(f"The Python executable {str(executable)!r} does not run: {said}") from None
    # Functions are sent as bytecode of this version of Python.
    if (implementation, version[:2]) != (sys.implementation.name, list(sys.version_info[:2])):
        raise PythonEnvironmentError(
            f"The Python executable {str(executable)!r} is {implementation} {'.'.join(map(str, version))}, and the program was"
            f" built with {sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}: use one of the same version."
        )
    return [str(folder) for folder in folders]


def make_virtual_environment(folder: Path, executable: Path, seen: Iterable[str]) -> Path:
    """Create a virtual environment without packages of its own.

    :param folder: its folder, which cannot change: its scripts name it
    :param executable: the interpreter with which it is created
    :param seen: folders of packages that are imported if it has none of that name
    :returns: its interpreter
    :raises PythonEnvironmentError: if the interpreter cannot create one
    """
    command = [str(executable), "-m", "venv", "--without-pip", str(folder)]
    code, said = _run(command, 120)
    if code != 0:
        raise PythonEnvironmentError(f"{str(executable)!r} cannot make a virtual environment; it said:\n{_cut_to_end(said)}")
    python = folder / "bin" / "python"
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    # Unlike a plain line, addsitedir also follows the .pth files of that folder: those of editable installs.
    lines = [f"import site; site.addsitedir({each!r})\n" for each in seen]
    (packages / "airflow_pipelines_host.pth").write_text("".join(lines))
    return python


def install(requirements: Requirements, python: Path, limit_seconds: float) -> None:
    """Install packages. A package that exists in a suitable version is kept.

    :param requirements: the packages to install
    :param python: the interpreter of the virtual environment
    :param limit_seconds: the maximum number of seconds for the installer
    :raises PythonEnvironmentError: if it fails; the message has the requirement, and the end of the installer's output
    """
    name, command = _find_installer(python)
    if requirements.cached_packages is not None:
        command += ["--no-index", "--find-links", str(requirements.cached_packages)]
    # These files may contain passwords of indexes, so they are deleted.
    with tempfile.TemporaryDirectory(prefix="requirements-") as folder:
        for option, text in (("requirement", requirements.text), ("constraint", requirements.constraints)):
            file = Path(folder, f"{option}s.txt")
            file.write_text(text)
            command += [f"--{option}", str(file)]
        code, said = _run(command, limit_seconds)
    if code is None:
        raise PythonEnvironmentError(
            f"{_describe(requirements.text, requirements.text)} took more than {limit_seconds:g} s to install; the last that {name}"
            f" said:\n{_cut_to_end(said)}"
        )
    if code != 0:
        raise PythonEnvironmentError(f"{_describe(requirements.text, said)} cannot be installed; {name} said:\n{_cut_to_end(said)}")


def _find_installer(python: Path) -> tuple[str, list[str]]:
    # pip sees the packages of the host environment; uv would install them again, so it is the second choice.
    if importlib.util.find_spec("pip") is not None:
        options = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
        return "pip", [str(python), "-m", "pip", "install", *options]
    uv = shutil.which("uv")
    if uv is not None:
        return "uv", [uv, "pip", "install", "--no-progress", "--python", str(python)]
    raise PythonEnvironmentError("Packages cannot be installed: neither pip nor uv is there. Install pip next to this project.")


def _run(command: Sequence[str], limit_seconds: float) -> tuple[int | None, str]:
    """Run a command, and return its return code, or None if it took too long, and its output."""
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            return None, process.communicate()[0]
        except BaseException:
            _end(process)
            raise
    return process.returncode, said


def _end(process: subprocess.Popen[str]) -> None:
    # Also kills what it has started: compilers, builds of packages.
    os.killpg(process.pid, signal.SIGKILL)


def _describe(text: str, said: str) -> str:
    """Return the part of a message that names the requirements to which the installer's output refers."""
    complaints = [
        line for line in said.splitlines() if re.search(r"error|cannot|could not|because|no matching", line, re.IGNORECASE)
    ]
    words = {_canonicalise(word) for line in complaints or said.splitlines() for word in _NAME.findall(line)}
    lines = [line.split(" #")[0].strip() for line in text.splitlines()]
    wanted = [line for line in lines if line and not line.startswith(("#", "-"))]
    blamed = [line for line in wanted if (name := _NAME.match(line)) and _canonicalise(name[0]) in words] or wanted
    names = ", ".join(repr(without_credentials(line)) for line in blamed)
    return f"The requirement{'s' * (len(blamed) != 1)} {names}"


def _canonicalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.rstrip(".-_")).lower()


def _cut_to_end(said: str) -> str:
    return without_credentials("\n".join(said.strip().splitlines()[-_SHOWN_LINES:]))


def without_credentials(text: str) -> str:
    """Return a text with the users and passwords of its URLs replaced.

    :param text: the output of an installer
    :returns: the text, with ``***`` in their place
    """
    return _CREDENTIALS.sub("***@", text)
