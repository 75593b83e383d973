"""A Kafka broker on loopback, for tests and benchmarks: one process that is its own controller."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from contextlib import suppress
from pathlib import Path
from typing import Final

from tools.maven import jars

USER: Final = "pipelines"
PASSWORD: Final = "an-open-secret"  # noqa: S105 - of a broker that only this machine reaches
_UP_S = 60.0
_DOWN_S = 20.0
_PROPERTIES: Final = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl},DETOUR://127.0.0.1:{detour},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl},DETOUR://127.0.0.1:{proxy}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,DETOUR:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={login} required user_{user}="{password}";
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
log.cleaner.enable=false
log.retention.ms=-1
num.network.threads=2
num.io.threads=2
background.threads=2
"""
_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_LOGGING: Final = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)


class Broker:
    """A broker with its own data. It may be stopped, killed and started any number of times, always at the same addresses."""

    def __init__(self, folder: Path, *java_options: str) -> None:
        """Prepare a broker that does not run yet.

        :param folder: the folder for its files, which does not exist yet
        :param java_options: options of its JVM, such as ``-Xmx256m``
        :raises tools.maven.NoJarsError: when Kafka is not available here
        """
        libraries = jars("kafka")
        folder.mkdir(parents=True)
        self._folder = folder
        plain, sasl, controller, self.detour = _free_ports(4)
        """The port of a listener that advertises another port of the broker, :attr:`proxy`."""
        self.proxy = _port_that_is_not_given_away()
        """The port for a proxy to :attr:`detour`, which can cut the broker off from the clients of this listener."""
        self.address = f"127.0.0.1:{plain}"
        """The address without authentication."""
        self.guarded_address = f"127.0.0.1:{sasl}"
        """The address with SASL/PLAIN authentication by :data:`USER` and :data:`PASSWORD`."""
        self._port = plain
        self.log = folder / "broker.log"
        """The log of its process."""
        self._properties = folder / "server.properties"
        self._properties.write_text(
            _PROPERTIES.format(
                plain=plain,
                sasl=sasl,
                detour=self.detour,
                proxy=self.proxy,
                controller=controller,
                data=folder / "data",
                login=_LOGIN,
                user=USER,
                password=PASSWORD,
            )
        )
        self._java = [
            shutil.which("java") or "java",
            *java_options,
            *_LOGGING,
            "-cp",
            f"{libraries}/*",
        ]
        self._process: subprocess.Popen[bytes] | None = None
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # An id that begins with a hyphen would be taken for an option.
        self._run_tool("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(self._properties))

    def start(self) -> None:
        """Start the broker, and wait until it answers.

        :raises RuntimeError: when it ends instead, or does not answer in time
        """
        output = self.log.open("ab")
        self._process = subprocess.Popen(
            [*self._java, "kafka.Kafka", str(self._properties)], stdout=output, stderr=output, env=_environment(), cwd=self._folder
        )
        output.close()
        deadline = time.monotonic() + _UP_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the Kafka broker did not start: {self._last_words()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the broker like an operator."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_DOWN_S)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None

    def kill(self) -> None:
        """Kill the broker."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self._process = None

    def close(self) -> None:
        """Kill the broker, and remove its files."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self._port)):
                return False
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        try:
            # A broker that lists itself has registered with its controller.
            return bool(client.list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    def _run_tool(self, *arguments: str) -> None:
        done = subprocess.run(
            [*self._java, *arguments], capture_output=True, text=True, env=_environment(), timeout=120, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{arguments[0]} of Kafka failed: {(done.stderr or done.stdout).strip()[-500:]}")

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-1600:] or "it said nothing"


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _port_that_is_not_given_away() -> int:
    """Return a free port that stays free until it is used: systems assign higher ports to clients that request any port."""
    while True:
        port = random.randrange(20_000, 30_000)  # noqa: S311 - nobody has to be unable to guess it
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _environment() -> dict[str, str]:
    """Return a clean environment, so that variables of a developer's shell do not change the test."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
