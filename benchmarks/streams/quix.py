"""Quix Streams: its environment, and the Kafka broker that it cannot do without. Both are installed once, below ``build/``.

The broker is Kafka itself, from Maven's repository, as one process that is broker and controller.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.streams.workloads import Workload
from tools.flink import ROOT, run, tool

VERSION = "3.28.1"
KAFKA = "4.1.0"
FOLDER = ROOT / "build" / "quix"
PORT = 19_492
PATIENCE_S = 60.0
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>benchmark</groupId><artifactId>broker</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA}</version></dependency></dependencies></project>
"""
SETTINGS = f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{PORT + 1}
listeners=PLAINTEXT://localhost:{PORT},CONTROLLER://localhost:{PORT + 1}
advertised.listeners=PLAINTEXT://localhost:{PORT}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


@dataclass(frozen=True)
class Quix:
    """Quix Streams with a broker.

    :param folder: where both are installed
    """

    folder: Path
    name: str = "quix"

    @classmethod
    def set_up(cls, folder: Path = FOLDER) -> Quix:
        """Install what is missing.

        :raises FlinkUnavailableError: when a tool is missing or an installation fails
        """
        done = folder / f"installed-{VERSION}-{KAFKA}"
        if not done.exists():
            uv = tool("uv")
            run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder / "venv"])
            python = folder / "venv" / "bin" / "python"
            run([uv, "pip", "install", "--quiet", "--system-certs", "--python", python, f"quixstreams=={VERSION}"])
            (folder / "pom.xml").write_text(POM)
            copied = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}", "-DincludeScope=runtime"]
            run([tool("mvn"), "-q", "-B", "-f", folder / "pom.xml", *copied])
            done.touch()
        return cls(folder)

    def rate(self, workload: Workload, repeats: int) -> float:
        """Elements per second, from the first element to the last, of a topic that is full when the program starts."""
        with tempfile.TemporaryDirectory(prefix="broker-") as data, self._broker(Path(data)):
            python = self.folder / "venv" / "bin" / "python"
            sizes = ["--elements", str(workload.elements), "--keys", str(workload.keys), "--repeats", str(repeats)]
            job = [python, "-m", "benchmarks.streams.quix_job", "--broker", f"localhost:{PORT}", "--folder", data, *sizes]
            answer = json.loads(run(job, {**os.environ, "PYTHONPATH": str(ROOT)}).splitlines()[-1])
        return workload.elements / statistics.median(answer["seconds"])

    def results(self, workload: Workload) -> list[Any] | None:  # noqa: ARG002
        """Its program is not the shared one: it checks the last counts itself."""
        return None

    @contextmanager
    def _broker(self, data: Path) -> Iterator[None]:
        """Run a broker while the block runs.

        :raises TimeoutError: if it does not answer
        """
        settings = data / "server.properties"
        settings.write_text(f"{SETTINGS}log.dirs={data / 'log'}\n")
        java = ["java", "-Xmx1g", "-cp", f"{self.folder / 'jars'}/*"]
        run([*java, "kafka.tools.StorageTool", "format", "--standalone", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", settings])
        with (data / "broker.log").open("w") as log:
            process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=subprocess.STDOUT)
            try:
                _wait(process, data / "broker.log")
                yield
            finally:
                process.terminate()
                process.wait(PATIENCE_S)


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the broker listens: only then can a client make a topic."""
    import socket

    until = time.monotonic() + PATIENCE_S
    while True:
        if process.poll() is not None or time.monotonic() > until:
            raise TimeoutError(f"the Kafka broker did not start within {PATIENCE_S:.0f} s:\n{log.read_text()[-2000:]}")
        try:
            socket.create_connection(("localhost", PORT), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
