"""The benchmark of connectors, as far as it needs no other system: its ways to read agree, its figures follow from times."""

from __future__ import annotations

import json

import pytest

from benchmarks.connectors import speed
from benchmarks.connectors.events import CUSTOMERS, KINDS, events
from benchmarks.connectors.json import measurements as json_measurements
from benchmarks.connectors.json_readers import READERS, SCHEMA, check, documents
from benchmarks.connectors.kafka import measurements as kafka_measurements
from benchmarks.connectors.titles import TITLES
from benchmarks.machine import Machine
from benchmarks.measure import Bound, Incomplete, Measurement
from benchmarks.options import Options
from benchmarks.results_file import Results
from benchmarks.tables import filled_in

MACHINE = Machine("2026-01-01T00:00:00Z", "a processor", 2, 4.0, "Linux", "3.11", "4.2.0")
MANY = 1_000


@pytest.mark.parametrize("name", READERS)
def test_each_way_reads_the_same_rows(name):
    if name == "orjson":
        # It is only there where something is measured.
        pytest.importorskip("orjson")
    table = READERS[name](documents(MANY))
    check(table, MANY)
    assert table.column_names == list(SCHEMA.column_names)
    assert table.equals(READERS["ours"](documents(MANY)))


def test_another_table_than_that_of_the_documents_is_noticed():
    table = READERS["ours"](documents(MANY))
    with pytest.raises(ValueError, match="999 rows of 1000"):
        check(table.slice(1), MANY)
    with pytest.raises(ValueError, match="1000 rows of 1001"):
        check(table, MANY + 1)


def test_events_are_spread_over_all_groups():
    found = [json.loads(event) for event in events(0, CUSTOMERS * len(KINDS))]
    assert [event["id"] for event in found] == list(range(len(found)))
    assert len({(event["customer"], event["kind"]) for event in found}) == CUSTOMERS * len(KINDS)


def test_figures_of_kafka_follow_from_turns():
    found = {item.name: item for item in kafka_measurements(500.0, [100.0, 300.0, 200.0], [100.0, 150.0, 250.0])}
    # Of each turn: what the machine did otherwise was the same for both.
    assert found["connectors_kafka_vs_structured"].value == 1.0
    assert found["connectors_kafka_vs_structured"].bound is Bound.AT_LEAST
    assert found["connectors_kafka_records_per_s"].value == 200.0
    assert found["connectors_kafka_records_per_s"].met is False
    assert found["connectors.kafka.structured_per_s"].value == 150.0


def test_only_our_reader_has_a_target():
    found = {item.name: item for item in json_measurements({"ours": 400_000.0, "orjson": 100.0})}
    assert found["connectors_json_rows_per_s"].met
    assert found["connectors.json.orjson_per_s"].met is None


def test_what_cannot_be_measured_takes_nothing_else_with_it(monkeypatch):
    def broken(options):
        raise RuntimeError("no broker")

    repeats = []

    def works(options):
        repeats.append(options.repeats)
        return [Measurement("connectors.x", 1.0, "s")]

    monkeypatch.setattr(speed, "SYSTEMS", {"kafka": broken, "files": works, "delta": works})
    with pytest.raises(Incomplete) as raised:
        speed.measure(Options(queries=("kafka", "files", "oracle"), repeats=10))
    assert [item.name for item in raised.value.measurements] == ["connectors.x"]
    assert repeats == [3]
    missing, failed = raised.value.failures
    assert missing == "oracle: there is no such system; there are kafka, files, delta"
    assert failed.startswith("kafka: ")
    assert "no broker" in failed


def test_all_systems_are_measured_by_default(monkeypatch):
    monkeypatch.setattr(speed, "SYSTEMS", {name: lambda options: [Measurement("x", 1.0, "s")] for name in "ab"})
    assert len(speed.measure(Options())) == 2


def test_the_page_shows_connectors():
    results = Results()
    figures = [
        Measurement("connectors_kafka_records_per_s", 250_000.4, "1/s", 150_000.0, Bound.AT_LEAST),
        Measurement("connectors_kafka_vs_structured", 0.9123, "x", 0.8, Bound.AT_LEAST),
        Measurement("connectors.kafka.structured_per_s", 270_000.0, "1/s"),
    ]
    results.add(figures, MACHINE)
    page = filled_in("<!-- begin connectors_kafka -->\n<!-- end connectors_kafka -->\n", results)
    assert "| a pipeline from the topic to the aggregate | 250,000 1/s | >= 150,000 |" in page
    assert "| ours / Structured Streaming, median of turns | 0.91 x | >= 0.8 |" in page
    assert "| Spark Structured Streaming over the same topic | 270,000 1/s |  |" in page
    assert "kafka_input" not in page


def test_every_figure_of_rates_has_a_title():
    named = {name for titles in TITLES.values() for name in titles}
    found = [*kafka_measurements(1.0, [1.0], [1.0]), *json_measurements(dict.fromkeys((*READERS, "spark"), 1.0))]
    assert {item.name for item in found} <= named
