"""Writes the Java classes that Spark loads into one file, which saves every later JVM a third of the time that it takes to start.

It is a dynamic archive of Java's class data sharing (JEP 350). Java ignores an archive that was made with other jars or by another
release of Java, so that it can only save time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ARCHIVE: Final = Path(sys.prefix) / "spark-classes.jsa"
_QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Java options by which nothing is printed about classes that cannot be archived, or about an archive that does not fit."""
USE: Final = f"-XX:SharedArchiveFile={ARCHIVE} {_QUIET}"
"""Java options by which a JVM reads the archive."""
_LIMIT_S: Final = 300


def main() -> None:
    """Write the archive, in a process of its own, unless it is there.

    :raises subprocess.CalledProcessError: when Spark does not start or cannot answer
    :raises subprocess.TimeoutExpired: when that takes minutes
    """
    if ARCHIVE.exists():
        return
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        made = Path(folder) / ARCHIVE.name
        java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={made} {_QUIET}"
        command = [sys.executable, "-m", "tools.load_spark_classes", folder]
        subprocess.run(
            command, env=os.environ | {"JDK_JAVA_OPTIONS": java}, check=True, timeout=_LIMIT_S, stderr=subprocess.DEVNULL
        )
        made.replace(ARCHIVE)


if __name__ == "__main__":
    main()
