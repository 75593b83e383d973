"""The prerequisites of Spark: the one right pair of packages, and a Java that Spark 4.2 runs on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

SPARK = "4.2.0"
JAVA_VERSIONS = (17, 21)
JAVA_MODULE = "jdk.incubator.vector"
_INSTALL = "sudo apt-get install openjdk-17-jre-headless"


class SetupError(RuntimeError):
    """The error of a prerequisite that is missing or wrong. The message names it and says what to do."""


def check_spark_packages() -> None:
    """Check that pyspark and pyspark-client are both installed in the pinned version.

    Both install into the folder ``pyspark``, so with any other pair the files of one version overwrite those of the other.

    :raises SetupError: when they are not; the message names both versions and the fix
    """
    versions = {name: _version(name) for name in ("pyspark", "pyspark-client")}
    if any(number != SPARK for number in versions.values()):
        listed = " and ".join(f"{name} {number or '(not installed)'}" for name, number in versions.items())
        raise SetupError(
            f"Found {listed}, but both must be {SPARK}: they share one folder. "
            f"Fix: pip uninstall -y pyspark pyspark-client && pip install pyspark=={SPARK} pyspark-client=={SPARK}"
        )


def find_java() -> Path:
    """Return the Java that Spark will run on: the one of JAVA_HOME, else the one on PATH.

    :returns: the path of the ``java`` program
    :raises SetupError: when there is none, or when it cannot run Spark
    """
    java = _java_program()
    number = _java_version(java)
    if number not in JAVA_VERSIONS:
        wanted = " or ".join(map(str, JAVA_VERSIONS))
        raise SetupError(f"{java} is Java {number}, but Spark {SPARK} needs Java {wanted}. Install one with: {_INSTALL}")
    if JAVA_MODULE not in _run(java, "--list-modules"):
        raise SetupError(
            f"{java} lacks the module {JAVA_MODULE}, which Spark {SPARK} loads. Install a complete Java with: {_INSTALL}"
        )
    return java


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java_program() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.is_file():
            raise SetupError(f"JAVA_HOME is {home}, but {java} does not exist. Correct JAVA_HOME, or install Java with: {_INSTALL}")
        return java
    on_path = shutil.which("java")
    if on_path is None:
        raise SetupError(f"There is no Java: neither JAVA_HOME nor PATH leads to one. Install it with: {_INSTALL}")
    return Path(on_path)


def _java_version(java: Path) -> int:
    text = _run(java, "-version")
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    if match is None:
        raise SetupError(f"{java} -version did not say a version but: {text.strip()[:200]}. Install Java with: {_INSTALL}")
    return int(match[1])


def _run(java: Path, argument: str) -> str:
    try:
        done = subprocess.run([str(java), argument], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise SetupError(f"{java} cannot be run: {error}. Install Java with: {_INSTALL}") from error
    return done.stdout + done.stderr
