from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.sql.program.cycles import components


def test_components_come_after_what_they_point_to() -> None:
    graph = {"a": ["b"], "b": ["c", "d"], "c": ["b", "outside"], "d": ["e"], "e": []}
    assert components(graph) == [("e",), ("d",), ("b", "c"), ("a",)]


def test_long_chains_and_long_circles_do_not_recurse() -> None:
    chain = {f"n{at}": [f"n{at + 1}"] for at in range(5000)}
    assert len(components(chain)) == 5000
    circle = {**chain, "n4999": ["n0"]}
    assert components(circle) == [tuple(circle)]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), max_size=4), max_size=8))
def test_members_of_a_component_reach_each_other(edges: dict[int, list[int]]) -> None:
    graph = {str(node): [str(other) for other in others if other in edges] for node, others in edges.items()}
    reached = {node: set(others) for node, others in graph.items()}
    for _ in graph:
        for others in reached.values():
            others |= {far for other in others for far in reached[other]}
    found = components(graph)
    assert sorted(node for component in found for node in component) == sorted(graph)
    place = {node: at for at, component in enumerate(found) for node in component}
    for node in graph:
        for other in graph:
            together = node == other or (other in reached[node] and node in reached[other])
            assert (place[node] == place[other]) == together
        assert all(place[other] <= place[node] for other in graph[node])
