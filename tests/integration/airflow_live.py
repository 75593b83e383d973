"""A real Airflow for a test: api-server, scheduler and triggerer as processes of their own, in a throw-away home."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

POLL_S = 0.5


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on right now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class LiveAirflow:
    """Airflow's services over the DAGs in a folder; use as a context."""

    def __init__(self, home: Path, dags: Path, repository: Path, environment: dict[str, str]) -> None:
        self._home = home
        api, worker_logs, trigger_logs = free_ports(3)
        self.url = f"http://localhost:{api}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._http = httpx.Client(base_url=self.url, timeout=30)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTEST"))}
        self.environment = clean | {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(api),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_logs),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_logs),
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
            # The supervisor of a task notices its end this late; see the first delay of triggers in docs/airflow.md.
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            "AIRFLOW__AIRFLOW_PIPELINES__DEFERRAL_FIRST_DELAY": "5",
            "PYTHONPATH": str(repository),
            **environment,
        }

    def __enter__(self) -> LiveAirflow:
        try:
            self._run("db", "migrate")
            self._run("dags", "reserialize")
            for service in ("api-server", "scheduler", "triggerer"):
                self.start(service)
            self.until("the API server answers", self._log_in)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the services, kindly at first."""
        self._http.close()
        for process in self._processes.values():
            process.send_signal(signal.SIGINT)
        for process in self._processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                # Each has a session of its own, so this reaches its workers and nobody else.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def start(self, service: str) -> None:
        """Start a service.

        :param service: ``api-server``, ``scheduler`` or ``triggerer``
        """
        with (self._home / f"{service}.log").open("wb") as log:
            self._processes[service] = subprocess.Popen(
                [sys.executable, "-m", "airflow", service],
                cwd=self._home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, service: str) -> None:
        """End a service as a crash does, with the processes that it has started."""
        process = self._processes.pop(service)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def until(self, what: str, look: Callable[[], Any], timeout_s: float = 120) -> Any:
        """Look until there is something to see, which is returned."""
        limit = time.monotonic() + timeout_s
        while not (found := look()):
            for name, process in self._processes.items():
                assert process.poll() is None, f"{name} ended:\n{self.log(name)}"
            assert time.monotonic() < limit, f"waiting until {what}: time is up\n{self.log('scheduler')}"
            time.sleep(POLL_S)
        return found

    def get(self, path: str) -> Any:
        """GET of the REST API; None for 404."""
        response = self._http.get(f"/api/v2{path}")
        return None if response.status_code == 404 else response.raise_for_status().json()

    def page(self, path: str, **query: str) -> Any:
        """What the page of pipelines asks."""
        return self._http.get(f"/airflow_pipelines/{path}", params=query).raise_for_status().json()

    def send(self, method: str, path: str, body: Any) -> Any:
        """Another call of the REST API."""
        response = self._http.request(method, f"/api/v2{path}", json=body)
        assert response.is_success, f"{response.text}\n{self.log('api-server')}"
        return response.json()

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None) -> DagRun:
        """Start a run of a DAG."""
        answer = self.send("POST", f"/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf or {}})
        return DagRun(self, f"/dags/{dag_id}/dagRuns/{answer['dag_run_id']}")

    def log(self, service: str, lines: int = 30) -> str:
        """The last lines of a service's log."""
        path = self._home / f"{service}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def _log_in(self) -> bool:
        try:
            response = self._http.get("/auth/token")
        except httpx.TransportError:
            return False
        if response.is_success:
            self._http.headers["Authorization"] = f"Bearer {response.json()['access_token']}"
        return response.is_success

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            cwd=self._home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert done.returncode == 0, done.stdout + done.stderr


class DagRun:
    """A run of a DAG, seen through the REST API."""

    def __init__(self, airflow: LiveAirflow, path: str) -> None:
        self._airflow = airflow
        self.path = path
        self.states_seen: dict[str, set[str | None]] = {}

    def tasks(self) -> dict[str, str | None]:
        """The state of every task now; all states ever seen are kept in ``states_seen``."""
        instances = self._airflow.get(f"{self.path}/taskInstances")["task_instances"]
        states = {instance["task_id"]: instance["state"] for instance in instances}
        for task, state in states.items():
            self.states_seen.setdefault(task, set()).add(state)
        return states

    def wait_for_task(self, task: str, state: str, timeout_s: float) -> None:
        """Wait until a task has a state; a failed run fails the test with the log of the task that failed."""

        def look() -> bool:
            states = self.tasks()
            self._check(states)
            return states.get(task) == state

        self._airflow.until(f"task {task} is {state} (states seen: {self.states_seen.get(task)})", look, timeout_s)

    def wait_for_success(self, timeout_s: float) -> None:
        """Wait until the run has succeeded."""

        def look() -> bool:
            self._check(self.tasks())
            return bool(self._airflow.get(self.path)["state"] == "success")

        self._airflow.until("the run has succeeded", look, timeout_s)

    def wait_for_end(self, timeout_s: float) -> str:
        """Wait until the run has ended, whichever way; returns its state."""

        def look() -> str | None:
            self.tasks()
            state = str(self._airflow.get(self.path)["state"])
            return state if state in ("success", "failed") else None

        return str(self._airflow.until("the run has ended", look, timeout_s))

    def request(self, task: str) -> Any:
        """What people are asked by a task that waits for them, which is waited for."""
        self.wait_for_task(task, "awaiting_input", timeout_s=120)
        return self._airflow.get(f"{self.path}/taskInstances/{task}/-1/hitlDetails")

    def answer(self, task: str, option: str) -> None:
        """Answer what a task asks."""
        body = {"chosen_options": [option], "params_input": {}}
        self._airflow.send("PATCH", f"{self.path}/taskInstances/{task}/-1/hitlDetails", body)

    def clear(self, task: str) -> None:
        """Clear a task, so that it runs again."""
        dag, run = self.path.split("/")[2::2]
        body = {"dry_run": False, "dag_run_id": run, "task_ids": [task], "only_failed": False, "reset_dag_runs": True}
        self._airflow.send("POST", f"/dags/{dag}/clearTaskInstances", body)

    def kill_worker(self, task: str) -> None:
        """Kill the process in which a task runs, which is waited for."""
        title = f"airflow worker -- {self._airflow.get(f'{self.path}/taskInstances/{task}')['id']}"

        def processes() -> list[int]:
            return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit() and _title(folder) == title]

        for process in self._airflow.until(f"task {task} has a process", processes):
            os.kill(process, signal.SIGKILL)

    def xcom(self, task: str, key: str = "return_value") -> Any:
        """What a task returned, or pushed as ``key``."""
        return self._airflow.get(f"{self.path}/taskInstances/{task}/xcomEntries/{key}")["value"]

    def log(self, task: str) -> str:
        """The end of the log of a task's last try."""
        number = self._airflow.get(f"{self.path}/taskInstances/{task}")["try_number"]
        return str(self._airflow.get(f"{self.path}/taskInstances/{task}/logs/{number}?full_content=true"))[-12000:]

    def _check(self, states: dict[str, str | None]) -> None:
        failed = [task for task, state in states.items() if state == "failed"]
        assert not failed, f"{failed[0]} failed:\n{self.log(failed[0])}\n{self._airflow.log('scheduler', 10)}"


def _title(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
