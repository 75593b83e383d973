"""Metrics as Prometheus reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from airflow_pipelines.contract.exposition import Metric, MetricKind, exposition, metrics_to_wire


def test_names_labels_and_values_are_read_as_they_were_measured() -> None:
    odd = {"pipeline_name": 'a "b" \\ c\nd'}
    text = exposition(
        [
            Metric("records_input_total", MetricKind.COUNTER, "Records.", 5, odd),
            Metric("storage_bytes", MetricKind.GAUGE, "Bytes.", 2**53, odd),
            Metric("records_input_total", MetricKind.COUNTER, "Records.", 7, {"pipeline_name": "q"}),
        ]
    )
    assert text.count("# TYPE records_input_total counter") == 1
    assert "# HELP storage_bytes Bytes." in text
    samples = [(each.name, each.labels, each.value) for family in text_string_to_metric_families(text) for each in family.samples]
    assert samples == [
        ("records_input_total", odd, 5.0),
        ("records_input_total", {"pipeline_name": "q"}, 7.0),
        ("storage_bytes", odd, float(2**53)),
    ]


def test_a_service_without_pipelines_has_no_metrics() -> None:
    assert exposition([]) == ""


def test_as_json_what_has_one_name_is_one_object() -> None:
    metrics = [
        Metric("records_input_total", MetricKind.COUNTER, "Records.", 5, {"endpoint": "a"}),
        Metric("storage_bytes", MetricKind.GAUGE, "Bytes.", 9, {}),
        Metric("records_input_total", MetricKind.COUNTER, "Records.", 7, {"endpoint": "b"}),
    ]
    values = [{"labels": {"endpoint": "a"}, "value": 5}, {"labels": {"endpoint": "b"}, "value": 7}]
    assert metrics_to_wire(metrics) == [
        {"key": "records_input_total", "type": "counter", "description": "Records.", "values": values},
        {"key": "storage_bytes", "type": "gauge", "description": "Bytes.", "values": [{"labels": {}, "value": 9}]},
    ]
