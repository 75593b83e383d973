"""The layout of a directed graph in layers, with each box to the right of all that it reads, and few crossings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

Edge: TypeAlias = tuple[str, str]

GAP_X: Final = 110.0
GAP_Y: Final = 26.0
_SWEEPS: Final = 6
_PASSAGE: Final = 10.0
"""The height of the place where an edge passes a layer."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a box."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Point:
    """A point in the picture; y grows downwards."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """The positions of boxes and edges.

    :param corners: the upper left corner of each box
    :param routes: the points of each edge, from the right side of one box to the left side of the other
    :param size: the size of the whole picture
    """

    corners: Mapping[str, Point]
    routes: Mapping[Edge, tuple[Point, ...]]
    size: Size


@dataclass(frozen=True, slots=True)
class _Passage:
    """The place where an edge passes a layer between its two ends."""

    edge: Edge
    layer: int


_Slot: TypeAlias = str | _Passage


def compute_layout(boxes: Mapping[str, Size], edges: Sequence[Edge]) -> GraphLayout:
    """Compute the layout of boxes.

    :param boxes: their sizes by name
    :param edges: pairs of names; edges that would close a cycle go back to the left
    """
    layer_of = _assign_layers(list(boxes), edges)
    chains = {edge: _chain(edge, layer_of) for edge in dict.fromkeys(edges)}
    layers: list[list[_Slot]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for name in boxes:
        layers[layer_of[name]].append(name)
    for slot in (slot for chain in chains.values() for slot in chain if isinstance(slot, _Passage)):
        layers[slot.layer].append(slot)
    _order(layers, [pair for chain in chains.values() for pair in pairwise(chain)])
    return _place_boxes(boxes, layers, chains)


def _assign_layers(names: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Return the layer of each box: one more than that of the last box that it reads."""
    sources: dict[str, list[str]] = defaultdict(list)
    for source, target in edges:
        sources[target].append(source)
    layers: dict[str, int] = {}
    open_now: set[str] = set()

    def layer(name: str) -> int:
        if name in layers:
            return layers[name]
        open_now.add(name)
        layers[name] = max((layer(source) + 1 for source in sources[name] if source not in open_now), default=0)
        open_now.discard(name)
        return layers[name]

    for name in names:
        layer(name)
    return layers


def _chain(edge: Edge, layer_of: Mapping[str, int]) -> list[_Slot]:
    source, target = edge
    return [source, *(_Passage(edge, layer) for layer in range(layer_of[source] + 1, layer_of[target])), target]


def _order(layers: list[list[_Slot]], pairs: Sequence[tuple[_Slot, _Slot]]) -> None:
    """Order each layer by the mean position of connected boxes, back and forth, so that few edges cross."""
    left, right = defaultdict(list), defaultdict(list)
    for source, target in pairs:
        left[target].append(source)
        right[source].append(target)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        neighbours = left if forth else right
        order = layers if forth else layers[::-1]
        places: dict[_Slot, float] = {}
        for layer in order:
            before = {slot: float(place) for place, slot in enumerate(layer)}
            middles = {slot: _mean([places[each] for each in neighbours[slot] if each in places], before[slot]) for slot in layer}
            layer.sort(key=lambda slot, middles=middles: middles[slot])  # type: ignore[misc]
            places |= {slot: float(place) for place, slot in enumerate(layer)}


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _place_boxes(boxes: Mapping[str, Size], layers: list[list[_Slot]], chains: Mapping[Edge, list[_Slot]]) -> GraphLayout:
    def height(slot: _Slot) -> float:
        return boxes[slot].height if isinstance(slot, str) else _PASSAGE

    heights = [sum(map(height, layer)) + GAP_Y * max(len(layer) - 1, 0) for layer in layers]
    tallest = max(heights, default=0.0)
    corners: dict[str, Point] = {}
    middles: dict[_Slot, Point] = {}
    x = 0.0
    for layer, total in zip(layers, heights, strict=True):
        width = max((boxes[slot].width for slot in layer if isinstance(slot, str)), default=0.0)
        y = (tallest - total) / 2
        for slot in layer:
            if isinstance(slot, str):
                corners[slot] = Point(x, y)
            middles[slot] = Point(x, y + height(slot) / 2)
            y += height(slot) + GAP_Y
        x += width + GAP_X
    routes = {edge: tuple(_route(edge, chain, middles, boxes)) for edge, chain in chains.items()}
    return GraphLayout(corners, routes, Size(max(x - GAP_X, 0.0), tallest))


def _route(edge: Edge, chain: Sequence[_Slot], middles: Mapping[_Slot, Point], boxes: Mapping[str, Size]) -> list[Point]:
    start = Point(middles[edge[0]].x + boxes[edge[0]].width, middles[edge[0]].y)
    return [start, *(middles[slot] for slot in chain[1:])]
