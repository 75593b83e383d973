"""The Java classes that Spark loads, in one archive file: a JVM that reads it starts a host in two thirds of the time.

It is a dynamic archive of Java's class data sharing (JEP 350). Java ignores an archive that was made with other jars or by another
release of Java, so the archive can only save time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from airflow_pipelines.common.pins import SetupError, check_spark_packages, find_java

ARCHIVE: Final = Path(sys.prefix) / "spark-classes.jsa"
"""The path of the archive: beside the packages, since it belongs to the jars of this PySpark."""
_QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""The Java options that suppress messages about classes that cannot be archived and about an archive that does not fit."""
_LIMIT_S: Final = 300
_LAST_CHARACTERS: Final = 2000


def java_options() -> str:
    """Return the options with which a JVM of Spark reads the archive; empty if there is no archive."""
    return f'"-XX:SharedArchiveFile={ARCHIVE}" {_QUIET}' if ARCHIVE.exists() else ""


def write_archive() -> None:
    """Write the archive in a separate process, which uses Spark as pipelines do.

    :raises SetupError: when it cannot be written; the message gives the reason
    """
    check_spark_packages()
    find_java()
    try:
        with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
            made = Path(folder) / ARCHIVE.name
            _use_spark(Path(folder), f'-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "-XX:ArchiveClassesAtExit={made}" {_QUIET}')
            made.replace(ARCHIVE)
    except OSError as error:
        raise SetupError(
            f"The archive of Spark's classes cannot be written to {ARCHIVE.parent} ({error.strerror or error}): do it as the user"
            " who installs packages there, for instance where an image is built"
        ) from error


def _use_spark(folder: Path, java: str) -> None:
    command = [sys.executable, "-m", "airflow_pipelines.engine.spark.load_classes", str(folder)]
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": java, "PYSPARK_PYTHON": sys.executable}
    try:
        subprocess.run(command, env=environment, check=True, timeout=_LIMIT_S, capture_output=True, text=True)
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"Spark had not loaded its classes after {_LIMIT_S} s") from error
    except subprocess.CalledProcessError as error:
        raise SetupError(f"Spark does not start, so that its classes are not known:\n{error.stderr[-_LAST_CHARACTERS:]}") from error
