from __future__ import annotations

import pytest

from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.running.log_line import LogLine, LogSource


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-05-01T00:00:00.123Z INFO [p] stdout: alert> (a,700.0)", LogLine(LogSource.STDOUT, "alert> (a,700.0)")),
        ("2026-05-01T00:00:00.123Z INFO [p] stdout: ", LogLine(LogSource.STDOUT, "")),
        ("2026-05-01T00:00:00.123Z INFO [p] stderr: stdout: x", LogLine(LogSource.STDERR, "stdout: x")),
        ("2026-05-01T00:00:00.123Z INFO [p] running", LogLine(LogSource.PIPELINE, "2026-05-01T00:00:00.123Z INFO [p] running")),
        ("ValueError: stdout: x", LogLine(LogSource.PIPELINE, "ValueError: stdout: x")),
    ],
)
def test_who_has_written_a_line(line: str, expected: LogLine) -> None:
    assert LogLine.of(line) == expected


def test_a_line_is_read_as_the_pipeline_writes_it(tmp_path: object) -> None:
    log = PipelineLog(f"{tmp_path}/p.log", "fraud [1]")
    log.info("%s: %s", "stdout", "a %s b")
    log.close()
    (line,) = log.path.read_text().splitlines()
    assert LogLine.of(line) == LogLine(LogSource.STDOUT, "a %s b")
