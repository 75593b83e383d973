from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

from airflow_pipelines.service.graphs.stream_graph import ChainEdge, ChainGraph
from airflow_pipelines.service.graphs.svg import picture


def node(number: int, name: str, *reads: tuple[int, str], parallelism: int = 2) -> dict[str, Any]:
    predecessors = [{"id": source, "ship_strategy": how, "side": "first"} for source, how in reads]
    return {"id": number, "type": name, "contents": name, "parallelism": parallelism, "predecessors": predecessors}


def graph(*nodes: dict[str, Any]) -> ChainGraph:
    return ChainGraph.of_plan(json.dumps({"nodes": nodes}))


FRAUD = graph(
    node(1, "Source: payments"),
    node(2, "Timestamps/Watermarks", (1, "FORWARD")),
    node(3, "Source: rules", parallelism=1),
    node(4, "Score <amount> & 'rules'", (2, "HASH"), (3, "BROADCAST")),
    node(5, "Sink: alerts", (4, "FORWARD")),
    node(6, "Sink: audit", (4, "FORWARD"), parallelism=1),
)


def test_operators_that_hand_on_directly_are_one_box() -> None:
    names = [[each.name for each in chain.nodes] for chain in FRAUD.chains]
    assert names == [
        ["Source: payments", "Timestamps/Watermarks"],
        ["Source: rules"],
        ["Score <amount> & 'rules'"],
        ["Sink: alerts"],
        ["Sink: audit"],
    ], "an operator with two readers ends its box"
    assert FRAUD.exchanges[:2] == (ChainEdge("1", "4", ("HASH",)), ChainEdge("3", "4", ("BROADCAST",)))


def test_other_numbers_of_tasks_are_other_boxes() -> None:
    assert len(graph(node(1, "a"), node(2, "b", (1, "FORWARD"), parallelism=3)).chains) == 2


def test_two_ways_between_the_same_boxes_are_one_arrow() -> None:
    found = graph(node(1, "a"), node(2, "b", (1, "HASH"), (1, "BROADCAST"), (1, "HASH")))
    assert found.exchanges == (ChainEdge("1", "2", ("HASH", "BROADCAST")),)


def test_a_program_without_a_plan_has_no_boxes() -> None:
    assert ChainGraph.of_plan("") == ChainGraph((), ())
    ElementTree.fromstring(picture(ChainGraph((), ()), "p"))


def test_the_picture_is_xml_with_all_names_whatever_they_are() -> None:
    text = picture(FRAUD, "<script>alert(1)</script>")
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in root.iter(f"{space}text")]
    assert "Score <amount> & 'rules'" in texts
    assert {"HASH", "BROADCAST", "1 task", "2 tasks"} <= set(texts)
    assert len(root.findall(f".//{space}rect[@class='box']")) == 5
    assert len(root.findall(f".//{space}path[@class='edge']")) == 4
    assert not root.findall(f".//{space}script")


def test_a_long_name_is_cut_and_whole_in_the_tooltip() -> None:
    name = "Map " + "x" * 100
    text = picture(graph(node(1, name)), "p")
    assert f"<title>{name}</title>" in text
    assert f">{name}</text>" not in text
