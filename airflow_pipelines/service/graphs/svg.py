"""The drawing of a stream program's graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape

from airflow_pipelines.service.graphs.layers import Edge, GraphLayout, Point, Size, compute_layout
from airflow_pipelines.service.graphs.stream_graph import ChainBox, ChainGraph

MARGIN: Final = 24.0
_LETTER: Final = 7.2
_LINE: Final = 18.0
_PADDING: Final = 12.0
_LONGEST: Final = 60
_STYLE: Final = (
    "text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2933 } "
    ".box { fill: #eef4fb; stroke: #3b6ea5; stroke-width: 1.2 } .head { fill: #52606d } "
    ".edge { fill: none; stroke: #52606d; stroke-width: 1.4 } "
    ".how { fill: #7b341e; font-size: 11px; paint-order: stroke; stroke: #ffffff; stroke-width: 4px } "
    ".paper { fill: #ffffff }"
)
_ARROW: Final = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="#52606d"/></marker>'
)


def picture(graph: ChainGraph, title: str) -> str:
    """Return a graph as an SVG document.

    :param graph: the graph
    :param title: the title of the document
    """
    layout = compute_layout(
        {chain.name: _size(chain) for chain in graph.chains}, [(each.source, each.target) for each in graph.exchanges]
    )
    width, height = layout.size.width + 2 * MARGIN, layout.size.height + 2 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f"<defs>{_ARROW}</defs>",
            f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
            f'<g transform="translate({MARGIN:.0f},{MARGIN:.0f})">',
            *(_draw_edge((each.source, each.target), ", ".join(each.strategies), layout) for each in graph.exchanges),
            *(line for chain in graph.chains for line in _draw_box(chain, layout)),
            "</g>",
            "</svg>",
            "",
        ]
    )


def _head(chain: ChainBox) -> str:
    tasks = chain.nodes[0].parallelism
    return f"{tasks} task{'' if tasks == 1 else 's'}"


def _names(chain: ChainBox) -> list[str]:
    return [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in (node.name for node in chain.nodes)]


def _size(chain: ChainBox) -> Size:
    longest = max(map(len, [_head(chain), *_names(chain)]))
    return Size(longest * _LETTER + 2 * _PADDING, (len(chain.nodes) + 1) * _LINE + 2 * _PADDING - 4)


def _draw_box(chain: ChainBox, layout: GraphLayout) -> Iterator[str]:
    corner, size = layout.corners[chain.name], _size(chain)
    yield (
        f'<g><rect class="box" x="{corner.x:.1f}" y="{corner.y:.1f}" width="{size.width:.1f}" height="{size.height:.1f}" rx="6"/>'
        f"<title>{escape(' -> '.join(node.name for node in chain.nodes))}</title>"
    )
    lines = [("head", _head(chain)), *(("", name) for name in _names(chain))]
    for number, (kind, text) in enumerate(lines):
        x, y = corner.x + _PADDING, corner.y + _PADDING + _LINE * number + 11
        yield f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
    yield "</g>"


def _draw_edge(edge: Edge, how: str, layout: GraphLayout) -> str:
    route = layout.routes[edge]
    middle = _find_middle(route)
    return (
        f'<path class="edge" d="{_draw_curve(route)}" marker-end="url(#arrow)"/>'
        f'<text class="how" text-anchor="middle" x="{middle.x:.1f}" y="{middle.y - 6:.1f}">{escape(how)}</text>'
    )


def _draw_curve(route: Sequence[Point]) -> str:
    parts = [f"M{route[0].x:.1f},{route[0].y:.1f}"]
    for start, end in pairwise(route):
        bend = (start.x + end.x) / 2
        parts.append(f"C{bend:.1f},{start.y:.1f} {bend:.1f},{end.y:.1f} {end.x:.1f},{end.y:.1f}")
    return " ".join(parts)


def _find_middle(route: Sequence[Point]) -> Point:
    """Return the middle of the last part of a route, where edges from one box have separated."""
    start, end = route[-2], route[-1]
    return Point((start.x + end.x) / 2, (start.y + end.y) / 2)
