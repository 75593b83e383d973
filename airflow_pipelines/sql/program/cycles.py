"""Cycles among views that read each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


def components(graph: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the strongly connected components of a graph, each after those that it points to.

    :param graph: the successors of each node; names that are not nodes are ignored
    :returns: the nodes of each component in the order of ``graph``; a node on no cycle is a component of its own
    """
    search = _Search(graph)
    for node in graph:
        if node not in search.numbers:
            search.visit(node)
    place = {node: at for at, node in enumerate(graph)}
    return [tuple(sorted(component, key=place.__getitem__)) for component in search.completed]


@dataclass(slots=True)
class _Search:
    """Tarjan's search, with an explicit stack: programs may chain more views than Python's recursion allows."""

    graph: Mapping[str, Sequence[str]]
    numbers: dict[str, int] = field(default_factory=dict)
    lowest: dict[str, int] = field(default_factory=dict)
    open: dict[str, None] = field(default_factory=dict)
    completed: list[list[str]] = field(default_factory=list)

    def visit(self, start: str) -> None:
        """Find all components that can be reached from ``start``."""
        path = [(start, iter(self.graph[start]))]
        self._enter(start)
        while path:
            node, rest = path[-1]
            following = next((other for other in rest if other in self.graph), None)
            if following is None:
                path.pop()
                self._leave(node)
                if path:
                    above = path[-1][0]
                    self.lowest[above] = min(self.lowest[above], self.lowest[node])
            elif following not in self.numbers:
                self._enter(following)
                path.append((following, iter(self.graph[following])))
            elif following in self.open:
                self.lowest[node] = min(self.lowest[node], self.numbers[following])

    def _enter(self, node: str) -> None:
        self.numbers[node] = self.lowest[node] = len(self.numbers)
        self.open[node] = None

    def _leave(self, node: str) -> None:
        if self.lowest[node] != self.numbers[node]:
            return
        component: list[str] = []
        while node not in component:
            component.append(self.open.popitem()[0])
        self.completed.append(component)
