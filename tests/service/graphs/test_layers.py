from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.service.graphs.layers import GAP_X, Edge, GraphLayout, Size, compute_layout

BOX = Size(100, 40)


def boxes(*names: str) -> dict[str, Size]:
    return dict.fromkeys(names, BOX)


def test_each_box_is_to_the_right_of_all_that_it_reads() -> None:
    found = compute_layout(boxes("a", "b", "c", "d"), [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "d")])
    assert [found.corners[name].x for name in "abcd"] == [number * (100 + GAP_X) for number in range(4)]
    assert len(found.routes["a", "b"]) == 2
    assert len(found.routes["a", "d"]) == 4, "it has a place of its own where it passes b and c"
    assert found.size.width == 4 * 100 + 3 * GAP_X


def test_edges_that_need_not_cross_do_not() -> None:
    found = compute_layout(boxes("a", "b", "x", "y"), [("a", "y"), ("b", "x")])
    assert (found.corners["a"].y < found.corners["b"].y) == (found.corners["y"].y < found.corners["x"].y)


def test_nothing_and_one_box() -> None:
    assert compute_layout({}, []) == GraphLayout({}, {}, Size(0.0, 0.0))
    assert compute_layout(boxes("a"), []).size == BOX


def test_a_cycle_is_drawn_somehow() -> None:
    found = compute_layout(boxes("a", "b"), [("a", "b"), ("b", "a")])
    assert found.corners.keys() == {"a", "b"}
    assert found.routes.keys() == {("a", "b"), ("b", "a")}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Size], list[Edge]]:
    count = draw(st.integers(1, 9))
    sizes = [Size(draw(st.integers(10, 300)), draw(st.integers(10, 100))) for _ in range(count)]
    pairs = list(combinations(range(count), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return {str(number): size for number, size in enumerate(sizes)}, [(str(one), str(other)) for one, other in chosen]


@given(graphs())
def test_no_two_boxes_overlap_and_every_edge_goes_to_the_right(graph: tuple[dict[str, Size], list[Edge]]) -> None:
    sizes, edges = graph
    found = compute_layout(sizes, edges)
    for one, other in combinations(sizes, 2):
        a, b = found.corners[one], found.corners[other]
        apart = a.x + sizes[one].width <= b.x or b.x + sizes[other].width <= a.x
        assert apart or a.y + sizes[one].height <= b.y or b.y + sizes[other].height <= a.y
    for name, corner in found.corners.items():
        assert 0 <= corner.x <= corner.x + sizes[name].width <= found.size.width
        assert -0.01 <= corner.y <= corner.y + sizes[name].height <= found.size.height + 0.01
    for (source, target), route in found.routes.items():
        assert all(start.x < end.x for start, end in pairwise(route))
        assert route[0].x == found.corners[source].x + sizes[source].width
        assert route[-1].x == found.corners[target].x
        assert route[-1].y == pytest.approx(found.corners[target].y + sizes[target].height / 2)
