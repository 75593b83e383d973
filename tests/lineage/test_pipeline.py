from __future__ import annotations

from typing import Any

# Its first import tries sockets, which tests of the fast part may not.
from airflow.providers.common.compat.openlineage import facet  # noqa: F401

from airflow_pipelines.lineage.datasets import DatasetName
from airflow_pipelines.lineage.openlineage import TellsLineage, operator_lineage
from airflow_pipelines.lineage.pipeline import Dataset, SourceColumn, lineage_of
from airflow_pipelines.operators.change import DeployPipelineOperator, ModifyPipelineOperator
from airflow_pipelines.operators.lifecycle import StartPipelineOperator
from tests.fixtures.airflow import ScriptedService

PROGRAM = """
create table orders (id bigint not null primary key, customer string, amount decimal(10, 2)) with ('connectors' = '...');
create local view big as select customer, amount * 2 as twice from orders where amount > 100;
create view totals as select customer, sum(twice) as total, count(*) as n from big group by customer;
"""


def relation(name: str, **columns: str) -> dict[str, Any]:
    return {"name": name, "fields": [{"name": column, "columntype": {"type": kind}} for column, kind in columns.items()]}


def connector(stream: str, transport: str, **config: Any) -> dict[str, Any]:
    return {"stream": stream, "transport": {"name": transport, "config": config}}


DESCRIPTOR = {
    "name": "shop",
    "program_code": PROGRAM.replace(" with ('connectors' = '...')", ""),
    "program_info": {
        "schema": {
            "inputs": [relation("orders", id="BIGINT", customer="VARCHAR", amount="DECIMAL")],
            "outputs": [relation("totals", customer="VARCHAR", total="DECIMAL", n="BIGINT"), relation("error_view", row="VARCHAR")],
        },
        "input_connectors": {"orders.files": connector("orders", "file_input", path="/data/orders.csv")},
        "output_connectors": {"totals.out": connector("totals", "kafka_output", **{"bootstrap.servers": "k:1", "topic": "t"})},
    },
}
SHOP = "airflow-pipelines://team"
FILE = DatasetName("file", "/data/orders.csv")


def outputs() -> dict[DatasetName, Dataset]:
    return {each.name: each for each in lineage_of(DESCRIPTOR, "team").outputs}


def test_columns_are_followed_from_source_to_target() -> None:
    lineage = lineage_of(DESCRIPTOR, "team")
    assert [each.name for each in lineage.inputs] == [FILE]
    made = outputs()
    orders, totals, topic = DatasetName(SHOP, "shop.orders"), DatasetName(SHOP, "shop.totals"), DatasetName("kafka://k:1", "t")
    assert set(made) == {orders, totals, topic}
    assert made[orders].made_of["amount"] == (SourceColumn(FILE, "amount"),)
    # Through the local view, which nobody outside sees.
    assert made[totals].made_of == {
        "customer": (SourceColumn(orders, "customer"),),
        "total": (SourceColumn(orders, "amount"),),
        "n": (),
    }
    assert made[topic].made_of["total"] == (SourceColumn(totals, "total"),)
    assert made[totals].columns == (("customer", "VARCHAR"), ("total", "DECIMAL"), ("n", "BIGINT"))


def test_a_program_that_did_not_compile_has_none() -> None:
    nothing = lineage_of({"name": "shop", "program_code": "selec", "program_info": None}, "team")
    assert nothing.inputs == nothing.outputs == ()


def test_a_text_that_this_release_does_not_read_has_datasets_without_columns_of_views() -> None:
    lineage = lineage_of(DESCRIPTOR | {"program_code": "create something new;"}, "team")
    made = {each.name.name: each for each in lineage.outputs}
    assert made["shop.totals"].made_of == {}
    assert made["shop.totals"].columns


def test_openlineage_gets_facets_of_it() -> None:
    told = operator_lineage(lineage_of(DESCRIPTOR, "team"))
    assert [(each.namespace, each.name) for each in told.inputs] == [("file", "/data/orders.csv")]
    (totals,) = (each for each in told.outputs if each.name == "shop.totals")
    assert [(one.name, one.type) for one in totals.facets["schema"].fields] == [
        ("customer", "VARCHAR"),
        ("total", "DECIMAL"),
        ("n", "BIGINT"),
    ]
    (field,) = totals.facets["columnLineage"].fields["total"].inputFields
    assert (field.namespace, field.name, field.field) == (SHOP, "shop.orders", "amount")


def test_the_operators_that_bring_it_about_tell_it(scripted: ScriptedService) -> None:
    scripted.pipeline("shop", **{name: value for name, value in DESCRIPTOR.items() if name != "name"})
    common: dict[str, Any] = {"task_id": "t", "pipeline_name": "shop", "pipeline_conn_id": "team"}
    for operator in (
        DeployPipelineOperator(**common, sql="create table t (a int);"),
        ModifyPipelineOperator(**common, description="x"),
        StartPipelineOperator(**common),
    ):
        assert isinstance(operator, TellsLineage)
        told = operator.get_openlineage_facets_on_complete(None)
        assert told is not None
        assert {each.name for each in told.outputs} == {"shop.orders", "shop.totals", "t"}


def test_lineage_that_cannot_be_had_fails_no_task(scripted: ScriptedService) -> None:
    operator = StartPipelineOperator(task_id="t", pipeline_name="gone")
    assert operator.get_openlineage_facets_on_complete(None) is None
    scripted.answers["GET", ""] = (400, {"error_code": "InvalidParam", "message": "no"})
    assert operator.get_openlineage_facets_on_complete(None) is None
