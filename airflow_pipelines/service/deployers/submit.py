"""The detached start of spark-submit on this machine, with this Python."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

from airflow_pipelines.common.class_archive import java_options
from airflow_pipelines.common.pins import SetupError, check_spark_packages, find_java
from airflow_pipelines.common.private_files import OUTPUT_UMASK, PRIVATE_UMASK, current_umask, make_private_folder, private_opener
from airflow_pipelines.service import processes
from airflow_pipelines.service.deployers.base import SubmitError, SubmitRequest, SubmittedProcess, merged_conf

PACKAGE_ROOT = Path(__file__).resolve().parents[3]
"""The folder that must be on PYTHONPATH for ``airflow_pipelines`` to be importable."""
_OURS = ("AIRFLOW", "_AIRFLOW")
"""The prefixes of the environment variables of this package's service and of Airflow."""


class LocalSubmitter:
    """A submitter that runs the spark-submit of the installed PySpark in its own session, with its output in the host's log."""

    def submit(self, request: SubmitRequest) -> SubmittedProcess:
        """Start the host; it outlives this process."""
        try:
            check_spark_packages()
            find_java()
        except SetupError as error:
            raise SubmitError(str(error)) from error
        command = submit_command(request, spark_home())
        try:
            make_private_folder(request.log_path.parent)
            with open(request.log_path, "ab", opener=private_opener) as log:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=submit_environment(request, spark_home()),
                    cwd=request.log_path.parent,
                    start_new_session=True,
                    umask=PRIVATE_UMASK,
                )
        except OSError as error:
            raise SubmitError(
                f"spark-submit could not be started ({error.filename or command[0]}: {error.strerror or error})"
            ) from error
        # Without anybody waiting for it, a host that ended would stay a zombie as long as this process lives.
        threading.Thread(target=process.wait, name=f"reaper-{process.pid}", daemon=True).start()
        return SubmittedProcess(pid=process.pid, machine=processes.this_machine())


def spark_home() -> Path:
    """Return the folder of the installed PySpark, without importing it."""
    spec = importlib.util.find_spec("pyspark")
    for location in (spec.submodule_search_locations or []) if spec else []:
        if (Path(location) / "bin" / "spark-submit").is_file():
            return Path(location)
    raise SubmitError(f"PySpark is not installed for {sys.executable}: install airflow-pipelines with its requirements")


def submit_command(request: SubmitRequest, home: Path) -> list[str]:
    """Return the command line, which contains nothing secret."""
    command = [str(home / "bin" / "spark-submit"), "--name", request.app_name]
    if request.master is not None:
        command += ["--master", request.master]
    for key, value in sorted(merged_conf(request.defaults, request.conf).items()):
        command += ["--conf", f"{key}={value}"]
    return [*command, str(request.script), *request.arguments]


def submit_environment(request: SubmitRequest, home: Path) -> dict[str, str]:
    """Return this process's environment, with the Python, the Spark and the package that run here.

    Variables of the service and of Airflow are left out: they hold API keys, connections and the URLs of databases, and the
    programs of pipelines can read the host's environment.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    environment = {**inherited, **request.environment, OUTPUT_UMASK: f"{current_umask():o}"}
    # Spark's own scripts look for python3 on the path and would otherwise find another environment's.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment["SPARK_HOME"] = str(home)
    # What spark-submit itself adds to the options of the JVM; its own launcher does not read them.
    environment["SPARK_SUBMIT_OPTS"] = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {java_options()}".strip()
    # The launcher's JVM is short-lived.
    environment.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    paths = [str(PACKAGE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment
