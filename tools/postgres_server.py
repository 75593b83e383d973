"""A temporary PostgreSQL server, for tests and measurements."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

PASSWORD_USER = "guarded"  # noqa: S105 - a name
"""The one user who needs a password; the server trusts all others."""
_ACCESS = f"""
host all {PASSWORD_USER} 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
local all all trust
"""
_ENCRYPTED_ACCESS = """
hostssl all all 127.0.0.1/32 cert
local all all trust
"""


class PostgresServer:
    """A temporary server on loopback, with logical replication. Its data survive a stop.

    :param programs: the folder with the server's programs
    :param certificates: a folder with ``server.crt``, ``server.key`` and ``ca.crt``: all connections are encrypted, and clients
        present a certificate of this authority
    """

    def __init__(self, programs: Path, certificates: Path | None = None) -> None:
        # Not in pytest's folder, because each new session of pytest closes that to the server's user.
        self._folder = Path(tempfile.mkdtemp(prefix="airflow-pipelines-postgresql-"))
        # A server refuses to run as root, so it runs as the user that its package made.
        self._as_user: list[str] = []
        if getpass.getuser() == "root":
            self._as_user = ["runuser", "-u", "postgres", "--"]
            shutil.chown(self._folder, "postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._programs = programs
        self._data = self._folder / "data"
        self._run("initdb", "-D", str(self._data), "-U", "pipelines", "--auth=trust", "--no-sync")
        self._put("pg_hba.conf", (_ACCESS if certificates is None else _ENCRYPTED_ACCESS).encode())
        self._encryption = {} if certificates is None else {"ssl": "on", "ssl_ca_file": "ca.crt"}
        if certificates is not None:
            for file in ("server.crt", "server.key", "ca.crt"):
                self._put(file, (certificates / file).read_bytes())

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database.

        :param database: its name
        """
        return f"postgresql://pipelines@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self._folder),
            "wal_level": "logical",
            "max_replication_slots": "50",
            "max_wal_senders": "50",
            # The data are temporary; a stop still writes everything.
            "fsync": "off",
            **self._encryption,
        }
        options = f"-p {self.port} " + " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._control("-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server.

        :param mode: the mode of ``pg_ctl``; ``immediate`` is like a crash
        """
        self._control("-m", mode, "stop")

    def close(self) -> None:
        """Stop the server, and delete its data."""
        self.stop("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _put(self, file: str, content: bytes) -> None:
        """Write a file of the server, which must be its owner."""
        path = self._data / file
        subprocess.run([*self._as_user, "tee", str(path)], input=content, check=True, stdout=subprocess.DEVNULL, cwd="/")
        path.chmod(0o600)

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-w", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        # A clean environment, so that variables of a developer's shell do not change the test.
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        command = [*self._as_user, str(self._programs / program), *arguments]
        # The server keeps inherited file descriptors open, so a wait for the end of its output would not return.
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", env=env)


def find_programs() -> Path | None:
    """Return the folder with the server's programs, or None if none is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    initdb = shutil.which("initdb")
    if not found and initdb:
        found = [Path(initdb).parent]
    return found[-1] if found else None
