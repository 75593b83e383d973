"""Logs stay within their limits, whoever writes them, and nothing of them is missed by who follows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airflow_pipelines.contract.log_files import limit_by_copying, log_files
from airflow_pipelines.host.state import pipeline_log
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.service.follow import _read


@pytest.mark.core
@pytest.mark.processes
def test_the_output_of_a_process_is_put_aside_while_it_runs(tmp_path: Path) -> None:
    log = tmp_path / "host.log"
    echo = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    with log.open("ab") as output, subprocess.Popen([sys.executable, "-c", echo], stdin=subprocess.PIPE, stdout=output) as process:
        assert process.stdin is not None
        for number in range(5):
            line = f"{number}" * 100 + "\n"
            size = log.stat().st_size
            process.stdin.write(line.encode())
            process.stdin.flush()
            while log.stat().st_size == size:
                assert process.poll() is None
            limit_by_copying(log, 50)
            assert log.stat().st_size == 0
        process.stdin.close()
    assert [path.read_text()[:1] for path in log_files(log)[1:]] == ["4", "3"]
    assert len(list(tmp_path.iterdir())) == 3
    limit_by_copying(tmp_path / "elsewhere.log", 50)


def test_a_pipelines_log_is_put_aside_and_followed_across(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_log, "LOG_BYTES", 2000)
    path = tmp_path / "p.log"
    log = PipelineLog(path, "p")
    seen, position = b"", 0
    for number in range(100):
        log.info("line %03d", number)
        if number % 3 == 0:
            while True:
                chunk, position = _read(path, position)
                seen += chunk
                if not chunk:
                    break
    log.close()
    assert [int(line.rpartition(b" ")[2]) for line in seen.splitlines()] == list(range(100))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 6000
