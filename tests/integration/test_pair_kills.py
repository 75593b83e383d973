"""From a topic of Kafka, a table of PostgreSQL, a Delta table and files through views to all four, while the host is killed and
servers are stopped and started: at the end all sixteen targets agree with their sources, and have each change once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.postgresql import Database
from tools.chaos.pairs import Kill, PairRounds, systems
from tools.kafka_broker import Broker

pytestmark = pytest.mark.integration

KEPT = "SELECT pg_current_wal_lsn() - confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database()"


@pytest.mark.timeout(900)
def test_targets_equal_their_views_after_kills_and_stops(
    tmp_path: Path, new_broker: Callable[[], Broker], database: Database
) -> None:
    broker = new_broker()
    with systems(tmp_path, broker, database.server, database.name) as made:
        # Any moment may be the one of the kill.
        rounds = PairRounds(tmp_path, made, random.Random())
        try:
            for kill in (Kill.HOST, Kill.SERVERS):
                rounds.one(kill)
            rounds.last()
            # The server of the table that is followed keeps its log of other tables only, and not for long.
            assert rounds.host.http.post("/checkpoint").status_code == 200
            deadline = time.monotonic() + 60
            while (size := database.rows(KEPT)[0][0]) > 1_100_000:
                assert time.monotonic() < deadline, size
                time.sleep(0.2)
        except AssertionError as error:
            for log in (tmp_path / "pipeline.log", broker.log):
                error.add_note(f"{rounds.what}: {log.name}\n{log.read_text(errors='replace')[-5000:]}")
            raise
        finally:
            rounds.close()
