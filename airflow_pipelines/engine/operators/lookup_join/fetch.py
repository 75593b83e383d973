"""Small deltas of joins with large relations: rows that match the delta's keys are fetched, and the rest happens in memory."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.ways import Declined, first_accepted
from airflow_pipelines.engine.operators.lookup_join.joined_rows import joined_rows
from airflow_pipelines.engine.operators.lookup_join.known_rows import Known
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.delta_sql import DeltaSql
from airflow_pipelines.sql.plan.ir.join_graph import JoinGraph
from airflow_pipelines.sql.plan.ir.linear import Linear, Select
from airflow_pipelines.sql.plan.ir.version import Version

_KEYS = "__keys"


@dataclass(frozen=True, slots=True)
class Delta:
    """The delta of a node.

    :param query: the query for the delta; it may read batches that the context holds until the step ends. None for no delta
    :param mode: the mode in which the query should run
    :param joined: the same rows in memory, if they are those of a join that was evaluated in the driver
    """

    query: str | None
    mode: Mode
    joined: Batch | None = None


def delta_of(node: Linear, context: Context) -> Delta:
    """Return the delta of a node. Equal rows are not consolidated."""
    return first_accepted(lambda: _join_delta(node, context), lambda: queried_delta_of(node, context))


def _join_delta(node: Linear, context: Context) -> Delta:
    """Return the delta of a join that the driver evaluates."""
    joined = joined_rows(node, context)
    if not joined.rows:
        return Delta(None, Mode.SMALL, joined)
    # The query names the batch, which has to live until it has run.
    context.pinned[f"joined {joined.number}"] = joined
    mode = Mode.SMALL if joined.is_small(context.limits) else Mode.LARGE
    return Delta(f"SELECT * FROM {context.batch_views.table(joined)}", mode, joined)


def queried_delta_of(node: Linear, context: Context) -> Delta:
    """Return the delta of a node by a query, even if it could be joined in the driver."""
    return first_accepted(lambda: _fetch_delta(node, context), lambda: _print_delta(node, context))


def _fetch_delta(node: Linear, context: Context) -> Delta:
    """Return the delta of a node by a query over small relations and over rows that are fetched from large ones."""
    changed = context.find_changed()
    mode = context.mode(node.reads & changed, node.rereads)
    if mode is Mode.LARGE or (mode is Mode.SMALL and context.is_tiny(node.rereads)):
        raise Declined("nothing has to be fetched, or too much")
    small = context.printer(Mode.SMALL)
    fetching = Fetching(small.read, single_partition=True, moved_range=small.moved_range, context=context)
    query = fetching.delta(node, changed)
    return Delta(query, Mode.NARROW if fetching.streamed else Mode.SMALL)


def _print_delta(node: Linear, context: Context) -> Delta:
    """Return the delta of a node by a query over all of its relations."""
    changed = context.find_changed()
    mode = context.mode(node.reads & changed, node.rereads)
    return Delta(context.printer(mode).delta(node, changed), mode)


@dataclass(frozen=True, slots=True)
class Fetching(DeltaSql):
    """A printer of deltas over small relations and over rows that it has fetched from large ones.

    It follows the equalities of a join block, starting at the delta: each large relation is scanned once for the keys that are
    known by then.

    :param streamed: the terms that read a large relation as a whole, because there is only one and nothing to follow
    """

    context: Context = field(kw_only=True)
    streamed: list[Select] = field(default_factory=list)

    def term(self, node: Select, at: int, changed: Set[str]) -> str | None:
        """Print a term of the delta, see :meth:`DeltaSql.term`.

        :raises Declined: if the rows for the delta cannot be looked up, or are too many for memory
        """
        if len(node.sources) == 1:
            return DeltaSql.term(self, node, at, changed)
        passed = self.moved_range_condition(node, at)
        delta = None if passed is None else self.delta(node.sources[at].node, changed)
        if passed is None or delta is None:
            return None
        narrow = self.context.printer(Mode.NARROW)
        versions = {
            place: Version.BEFORE if place < at and source.node.reads & changed else Version.AFTER
            for place, source in enumerate(node.sources)
            if place != at
        }
        small = self._small(node, versions)
        tables: dict[int, str] = {at: delta}
        for place in small:
            contents = self.contents(node.sources[place].node, versions[place])
            if contents is None:
                return None
            tables[place] = contents
        large = [place for place in versions if place not in small]
        if not passed and self._look_up(node, at, large, versions, tables):
            texts = [tables.get(place) for place in range(len(node.sources))]
            return None if None in texts else self.select(node, texts, None, passed)
        if len(large) == 1 and (len(node.sources) == 2 or passed):
            contents = narrow.contents(node.sources[large[0]].node, versions[large[0]])
            self.streamed.append(node)
            texts = [tables.get(place, contents) for place in range(len(node.sources))]
            return narrow.select(node, texts, node.sources[at], passed)
        if not self._fetch_all(node, at, large, versions, tables, narrow):
            return None
        return self.select(node, [tables[place] for place in range(len(node.sources))], None, passed)

    def _look_up(self, node: Select, at: int, large: list[int], versions: dict[int, Version], tables: dict[int, str]) -> bool:
        """Add the rows of the large sources for the delta's keys to ``tables``, nothing for a source without rows.

        Return False, with nothing changed, if this is impossible without a scan.
        """
        context = self.context
        rows = Known.of_delta(node, at, context)
        queries: dict[int, str] = {}
        missing = set(large)
        missing |= {place for place in versions if not context.is_tiny(node.sources[place].node.reads, versions[place])}
        while missing:
            try:
                hop = rows.hop(node, missing, set(versions) - missing, versions)
            except Declined:
                # Sources in memory can be read whole.
                if missing & set(large):
                    return False
                break
            missing.discard(hop.place)
            if not hop.batch.rows:
                # If one side has no rows, the join has none.
                tables.pop(hop.place, None)
                return True
            # The query names the batch, which has to live until it has run.
            context.pinned[f"looked up {hop.batch.number}"] = hop.batch
            contents = context.over(hop.relation, hop.batch).contents(node.sources[hop.place].node, versions[hop.place])
            queries[hop.place] = str(contents)
        tables |= queries
        return True

    def _small(self, node: Select, versions: dict[int, Version]) -> set[int]:
        """Return the sources that together are small enough to be read whole, smallest first."""
        context = self.context
        places, total = set(), 0
        sizes = []
        for place, version in versions.items():
            batches = [b for name in node.sources[place].node.reads for b in context.relations[name].batches(version)]
            if all(batch.table is not None for batch in batches):
                sizes.append((sum(batch.rows for batch in batches), place))
        for rows, place in sorted(sizes):
            total += rows
            if total <= context.limits.small_input or rows == 0:
                places.add(place)
        return places

    def _fetch_all(
        self, node: Select, at: int, large: list[int], versions: dict[int, Version], tables: dict[int, str], narrow: DeltaSql
    ) -> bool:
        """Fetch the matching rows of the large sources into ``tables``, and return False if one of them has no matching row."""
        graph = node.join_graph
        places = {source.alias: place for place, source in enumerate(node.sources)}
        reached, missing = {at}, set(large)
        while missing:
            linked = {
                places[one]
                for equality in graph.equalities
                for one, other in _both_orders(equality.aliases)
                if places[other] in reached
            } - reached
            if not linked:
                raise Declined("a source is linked to none of the others by an equality")
            # Small sources cost nothing and may reduce the keys.
            place = min(linked, key=lambda place: (place in missing, place))
            if place in missing:
                batch = self._fetch(node, graph, place, versions[place], {p: tables[p] for p in reached}, narrow)
                if batch is None:
                    return False
                tables[place] = f"SELECT * FROM {self.context.batch_views.table(batch)}"
                missing.discard(place)
            reached.add(place)
        return True

    def _fetch(
        self, node: Select, graph: JoinGraph, place: int, version: Version, known: dict[int, str], narrow: DeltaSql
    ) -> Batch | None:
        """Fetch the rows of one source that may match the known ones, as far as the block reads them, or None if there are none."""
        context, source = self.context, node.sources[place]
        contents = narrow.contents(source.node, version)
        if contents is None:
            return None
        links = [
            (equality.texts[side], equality.texts[1 - side])
            for equality in graph.equalities
            for side in (0, 1)
            if equality.aliases[side] == source.alias
            and any(node.sources[other].alias == equality.aliases[1 - side] for other in known)
        ]
        keys = self._keys(node, graph, known, [theirs for _, theirs in links])
        if keys is None:
            return None
        alias = quote(source.alias)
        schema = context.schema(source.node)
        if graph.columns is not None:
            schema = StructType([column for column in schema.fields if column.name in graph.columns[source.alias]])
        columns = "".join(f"{alias}.{quote(column.name)}, " for column in schema.fields)
        match = " AND ".join(f"({mine}) = `{_KEYS}`.k{number}" for number, (mine, _) in enumerate(links))
        own = [f"({part.text})" for part in graph.conjuncts if part.is_plain and part.aliases == {source.alias}]
        where = f" WHERE {' AND '.join(own)}" if own else ""
        query = (
            f"SELECT /*+ BROADCAST(`{_KEYS}`) */ {columns}{alias}.{WEIGHT} FROM ({contents}) AS {alias}"
            f" LEFT SEMI JOIN ({keys}) AS `{_KEYS}` ON {match}{where}"
        )
        batch = context.pinned.get(query)
        if batch is None:
            table = context.collect_bounded(query, Mode.NARROW)
            batch = context.pinned[query] = Batch.in_memory(weighted(schema), table)
        return batch if batch.rows else None

    def _keys(self, node: Select, graph: JoinGraph, known: dict[int, str], texts: list[str]) -> str | None:
        """Return a query for the values of expressions over the known sources, joined as in the block, or None for no rows."""
        aliases = {node.sources[place].alias for place in known}
        conditions = [f"({part.text})" for part in graph.conjuncts if part.aliases and part.aliases <= aliases]
        sources = " CROSS JOIN ".join(f"({text}) AS {quote(node.sources[place].alias)}" for place, text in sorted(known.items()))
        items = ", ".join(f"{text} AS k{number}" for number, text in enumerate(texts))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if len(known) == 1:
            return f"SELECT {items} FROM {sources}{where}"
        query = f"SELECT DISTINCT {items} FROM {sources}{where}"
        batch = self.context.pinned.get(query)
        if batch is None:
            weights = f"SELECT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({query})"
            batch = self.context.pinned[query] = self.context.batch_bounded(weights, Mode.SMALL)
        return f"SELECT * FROM {self.context.batch_views.table(batch)}" if batch.rows else None


def _both_orders(aliases: tuple[str, str]) -> tuple[tuple[str, str], tuple[str, str]]:
    return aliases, (aliases[1], aliases[0])
