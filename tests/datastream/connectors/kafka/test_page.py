"""The program of the page about Kafka runs as it stands."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.kafka import Kafka

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "kafka.md"


@pytest.mark.processes
def test_the_program_of_the_page_counts_visits(kafka: Kafka, tmp_path: Path) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text(text)
    kafka.create("visits", 2)
    kafka.create("visits-by-minute")
    # Both partitions are past the first minute by more than 5 seconds: where both become idle at once, neither moves time any more.
    for partition, visits in enumerate(([("a", 1_000), ("a", 59_000), ("b", 66_000)], [("a", 30_000), ("b", 70_000)])):
        kafka.send("visits", *(json.dumps({"page": page, "at": at}) for page, at in visits), partition=partition)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KAFKA": kafka.address}
    process = subprocess.Popen([sys.executable, str(program)], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        kafka.until(lambda: process.poll() is not None or len(kafka.read("visits-by-minute")) > 0)
        assert process.poll() is None, process.communicate()[1]
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert [json.loads(record.value or b"") for record in kafka.read("visits-by-minute")] == [
        {"page": "a", "minute": 0, "visits": 3}
    ]
