"""Jars for tests and benchmarks, from Maven: each set is a file of ``tools/jars``, copied once into the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

_POMS = Path(__file__).with_name("jars")
_LONGEST_S = 600


class NoJarsError(RuntimeError):
    """The error if the jars are not available here; the message has the reason."""


def jars(name: str) -> Path:
    """Return the folder with the jars of a set, and download them if they are missing.

    :param name: ``NAME`` of ``tools/jars/NAME.xml``
    :raises NoJarsError: when Java or Maven is missing, or a jar cannot be downloaded
    """
    for program, package in (("java", "openjdk-17-jre-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise NoJarsError(f"{program} is not installed (Debian: apt-get install {package})")
    pom = _POMS / f"{name}.xml"
    # Each version has its own folder, so that versions do not mix.
    version = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-pipelines" / "jars"
    folder = cache / f"{name}-{version}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _download(pom, folder)
    return folder


def _download(pom: Path, folder: Path) -> None:
    aside = folder.with_name(folder.name + ".part")
    shutil.rmtree(aside, ignore_errors=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={aside}"]
    command = ["mvn", "-B", "-q", "-f", str(pom), *goal]
    # Options for the JVMs of tests must not reach Maven's.
    env = {key: value for key, value in os.environ.items() if key not in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, env=env, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoJarsError(f"Maven had not downloaded the jars of {pom.name} after {_LONGEST_S} s") from error
    if done.returncode or not any(aside.glob("*.jar")):
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise NoJarsError(f"Maven cannot download the jars of {pom.name}: {lines[0] if lines else 'no reason given'}")
    aside.rename(folder)


def main(names: list[str]) -> int:
    """Download sets of jars, so that nobody has to wait for them later.

    :param names: the names for :func:`jars`
    :return: the exit code: 1 if a set is not available
    """
    code = 0
    for name in names:
        try:
            jars(name)
        except NoJarsError as error:
            sys.stderr.write(f"{error}\n")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
