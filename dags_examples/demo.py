"""Run the example DAG with a real Airflow, twice, and tell what happened: ``python -m dags_examples.demo``.

Everything is kept below ``.demo`` in the current folder, which is emptied first: Airflow's own home and log, the pipelines' store
and state, and the object store. Nothing else on the machine is touched, and the Spark host is stopped at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from airflow_pipelines.common.pins import SetupError, check_spark_packages, find_java
from dags_examples import demo_story as story

EXAMPLES = Path(__file__).resolve().parent
RUN_LIMIT_S = 600
_STARTING = "[DAG TEST] starting task_id="


class DemoError(Exception):
    """The demo could not go on; the message says why and where to read more."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the demo keeps things."""

    root: Path

    @property
    def airflow(self) -> Path:
        """Airflow's home."""
        return self.root / "airflow"

    @property
    def pipelines(self) -> Path:
        """The pipelines' home."""
        return self.root / "pipelines"

    @property
    def log(self) -> Path:
        """Airflow's log."""
        return self.root / "airflow.log"

    def environment(self) -> dict[str, str]:
        """Return the environment of every process of the demo."""
        # Neither a server nor a connection that this machine may have for its own pipelines is the demo's business.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW_PIPELINES_", "AIRFLOW_CONN_"))}
        return kept | {
            "AIRFLOW_HOME": str(self.airflow),
            "AIRFLOW_PIPELINES_HOME": str(self.pipelines),
            "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.airflow / 'airflow.db'}",
            # One process runs everything here, so no worker can still be leaving a task when its trigger fires.
            "AIRFLOW__AIRFLOW_PIPELINES__DEFERRAL_FIRST_DELAY": "0",
            "PYTHONPATH": os.pathsep.join([str(EXAMPLES.parent), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }


class Demo:
    """One run of the demo."""

    def __init__(self, folders: Folders, console: Console) -> None:
        self._folders = folders
        self._console = console
        self._environment = folders.environment()

    def run(self) -> None:
        """Everything, from an empty folder to a stopped host. Raises DemoError."""
        started = time.monotonic()
        try:
            check_spark_packages()
            find_java()
        except SetupError as error:
            raise DemoError(str(error)) from error
        self._empty()
        try:
            self._do("setting up a throw-away Airflow", ["airflow", "db", "migrate"])
            story.introduction(self._console)
            self._conduct("first run of the DAG", story.first_run)
            self._conduct("second run of the DAG", story.second_run)
        finally:
            self._stop_host()
        story.farewell(self._console, self._folders.root, time.monotonic() - started)

    def _conduct(self, title: str, tell: Callable[[Console, dict[str, Any]], None]) -> None:
        self._do(title, ["airflow", "dags", "test", "student_grades"])
        tell(self._console, self._results())

    def _do(self, title: str, command: list[str]) -> None:
        """Run a command, its output going to the log, and show how far it is."""
        program, *arguments = command
        with self._folders.log.open("ab") as log, self._console.status(title) as status:
            start = log.tell()
            process = subprocess.Popen(
                [sys.executable, "-m", program, *arguments],
                cwd=self._folders.root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                self._watch(process, start, title, status.update)
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
        if process.returncode:
            raise DemoError(f"{' '.join(command)} failed (exit code {process.returncode}):\n{self._last_lines(start)}")

    def _watch(self, process: subprocess.Popen[bytes], start: int, title: str, show: Callable[[str], None]) -> None:
        limit = time.monotonic() + RUN_LIMIT_S
        with self._folders.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(start)
            while process.poll() is None:
                if time.monotonic() > limit:
                    raise DemoError(f"{title} took more than {RUN_LIMIT_S} s:\n{self._last_lines(start)}")
                for line in log:
                    if _STARTING in line:
                        show(f"{title}: {line.split(_STARTING)[1].split()[0]}")
                time.sleep(0.2)

    def _results(self) -> dict[str, Any]:
        """Return the XComs of the latest run, by task."""
        os.environ.update(self._environment)
        # Imported here: Airflow reads its home from the environment when it is imported.
        from airflow.models.dagrun import DagRun
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        with create_session() as session:
            run = session.scalars(select(DagRun).where(DagRun.dag_id == "student_grades").order_by(DagRun.id.desc())).first()
            if run is None or run.state != "success":
                raise DemoError(f"the DAG run is {'missing' if run is None else run.state}:\n{self._last_lines(0)}")
            rows = session.scalars(select(XComModel).where(XComModel.run_id == run.run_id, XComModel.key == "return_value"))
            return {row.task_id: XComModel.deserialize_value(row) for row in rows}

    def _empty(self) -> None:
        """Start from nothing, but stop what an interrupted demo may have left running first."""
        if self._folders.pipelines.exists():
            self._stop_host()
        for folder in (self._folders.airflow, self._folders.pipelines):
            shutil.rmtree(folder, ignore_errors=True)
        self._folders.airflow.mkdir(parents=True)
        self._folders.log.write_bytes(b"")

    def _stop_host(self) -> None:
        command = [sys.executable, "-m", "airflow_pipelines.cli", "hosts", "stop"]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        with self._folders.log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}\n")

    def _last_lines(self, start: int, count: int = 25) -> str:
        with self._folders.log.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
        telling = [line for line in lines if "rror" in line] or lines
        return "\n".join([*telling[-count:], f"The whole log: {self._folders.log}"])


def main() -> int:
    """Run the demo in ``.demo``; the exit code is 0 when everything worked."""
    console = Console()
    try:
        Demo(Folders(Path(".demo").resolve()), console).run()
    except DemoError as error:
        console.print(f"\n[bold red]The demo failed:[/] {escape(str(error))}")
        return 1
    except KeyboardInterrupt:
        console.print("\nInterrupted; the Spark host is stopped.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
