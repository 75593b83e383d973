"""Deltas of inner joins in the driver: Arrow matches rows by keys, and Spark evaluates expressions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DataType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.execution.arrow_conditions import can_decide, holds
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.row_queries import ComputedValues
from airflow_pipelines.engine.execution.ways import Budget, Declined
from airflow_pipelines.engine.operators.lookup_join.conditions import JoinedColumns, compute_items
from airflow_pipelines.engine.operators.lookup_join.join_block import JoinBlock, join_block
from airflow_pipelines.engine.operators.lookup_join.joined_items import items_of
from airflow_pipelines.engine.operators.lookup_join.matches import Matches, known_name, matching_pairs
from airflow_pipelines.engine.operators.lookup_join.matching import same_kind
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.type_text import WHOLE_NUMBERS, type_text
from airflow_pipelines.rows.arrow import cast_to_schema
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.sql.plan.ir.join_graph import Conjunct, Equality, SourceColumn
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Select
from airflow_pipelines.sql.plan.ir.version import Version

_EQUAL_AS_STORED = WHOLE_NUMBERS | {"boolean", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz"}
"""The types whose values are equal for Spark exactly when their stored values are equal.

Decimals of one precision and scale are such types, too.
"""
_ROWS_AT_A_TIME = 200_000


def joined_rows(node: Linear, context: Context) -> Batch:
    """Return the delta of a join block as a batch in memory. Equal rows are not consolidated.

    :param node: any linear node
    :param context: the context of the step
    :raises Declined: if the node is not a join by columns of relations, or there is too much for the driver
    """
    join = _join(node, context)
    return Batch.in_memory(weighted(context.schema(node)), items_of(join.block, join.matches, join.conditions))


def joined_parts(node: Linear, context: Context) -> Iterator[pa.Table]:
    """Return the delta of :func:`joined_rows` part by part, for callers that keep few rows.

    :param node: any linear node
    :param context: the context of the step
    :returns: the parts; the next one raises :class:`Declined` if a single row takes too many bytes
    :raises Declined: if the node is not a join by columns of relations, or there is too much for the driver
    """
    join = _join(node, context)
    return _items_in_parts(join, join.matches)


@dataclass(frozen=True, slots=True)
class _Join:
    """The matches found for the delta of a join block.

    :param matches: the rows of all its sources
    :param conditions: the conditions that the rows still have to meet
    """

    block: JoinBlock
    matches: Sequence[Matches]
    conditions: Sequence[Conjunct]


def _join(node: Linear, context: Context) -> _Join:
    block = join_block(node, context)
    all_matches: list[Matches] = []
    undecided: set[str] = set()
    budget = Budget(context.limits.driver_rows)
    for at in range(len(block.sources)):
        if block.sources[at].relation in block.changed:
            term = _Term(block, at)
            matches = term.matches(budget.left)
            budget.spend(sum(part.rows for part in matches))
            all_matches += matches
            undecided |= {condition.text for condition in term.conditions} if matches else set()
    # In the order of the query: a condition may filter out rows for which a later one would fail.
    conditions = [condition for condition in block.node.join_graph.conjuncts if condition.text in undecided]
    return _Join(block, all_matches, conditions)


def _items_in_parts(join: _Join, all_matches: Sequence[Matches]) -> Iterator[pa.Table]:
    """Yield the items of some matches in as few parts as the limit of bytes per part allows."""
    rows = sum(matches.rows for matches in all_matches)
    try:
        Budget(_ROWS_AT_A_TIME).require(rows)
        items = items_of(join.block, all_matches, join.conditions)
    except Declined:
        if rows <= 1:
            raise
    else:
        yield items
        return
    for half in _split_in_halves(all_matches):
        yield from _items_in_parts(join, half)


def _split_in_halves(all_matches: Sequence[Matches]) -> Iterator[Sequence[Matches]]:
    """Yield the matches in two parts, in order."""
    if len(all_matches) > 1:
        yield from (all_matches[:1], all_matches[1:])
        return
    rows = all_matches[0].rows
    yield from ([all_matches[0].at(places)] for places in np.array_split(np.arange(rows), 2))


@dataclass(slots=True)
class _Link:
    """The way to reach a source: pairs of its columns and the columns or expressions of known rows that they must equal."""

    place: int
    pairs: list[tuple[SourceColumn, str]]
    equalities: list[Equality]


class _Term:
    """The contribution of one source's delta to a block: it is matched with one other source after the other."""

    def __init__(self, block: JoinBlock, at: int) -> None:
        """Create a term without known rows.

        :param block: the block
        :param at: the index of the source
        """
        self._block = block
        self._at = at
        self._context = block.context
        self._plain = block.plain
        self._conditions: list[Conjunct] = list(block.node.join_graph.conjuncts)

    @property
    def conditions(self) -> Sequence[Conjunct]:
        """The conditions that have not been checked yet."""
        return self._conditions

    def matches(self, most: int) -> list[Matches]:
        """Return the matching rows of all sources.

        :param most: the maximum number of matches
        :returns: one part or none
        :raises Declined: if there are too many, or they have to be found in another way
        """
        block = self._block
        reached = {self._at}
        missing = set(range(len(block.sources))) - reached
        known = self._filter_delta(self._delta())
        while known.num_rows:
            link = self._find_link(reached, missing)
            known, keys = self._keyed(known, link, reached)
            matches = self._find_matches(known, keys, link.place, most)
            # Equalities that the keys have established need no further check.
            consumed = {f"{equality.texts[0]} = {equality.texts[1]}" for equality in link.equalities}
            self._conditions = [condition for condition in self._conditions if condition.text not in consumed]
            reached.add(link.place)
            missing.discard(link.place)
            matches = self._where(matches, self._take_comparable(reached))
            if not missing:
                return [matches]
            # The rows that the next source is to match.
            names = (known_name(column) for place in sorted(reached) for column in block.columns(place))
            known = matches.table(names, Budget(self._context.limits.driver_bytes))
        return []

    def _delta(self) -> pa.Table:
        """Return the rows of the source's delta.

        :raises TooMuch: if they take too many bytes
        """
        names = self._block.stored_names(self._at)
        batches = self._context.relations[self._block.sources[self._at].relation].delta
        columns = [*dict.fromkeys(names.values()), WEIGHT]
        parts, budget = [], Budget(self._context.limits.driver_bytes)
        for part in itertools.chain.from_iterable(_parts(batch, columns) for batch in batches):
            budget.spend(part.nbytes)
            parts.append(part)
        rows = pa.concat_tables(parts).combine_chunks()
        return pa.table({**{name: rows[stored] for name, stored in names.items()}, WEIGHT: rows[WEIGHT]})

    def _filter_delta(self, known: pa.Table) -> pa.Table:
        """Return the rows of the delta that meet the conditions that Arrow can check."""
        comparable = self._take_comparable({self._at})
        if not comparable or not known.num_rows:
            return known
        values = {column: known[known_name(column)] for column in _find_columns_read(comparable)}
        return known.filter(pa.array(holds(comparable, values)))

    def _where(self, matches: Matches, comparable: Sequence[Conjunct]) -> Matches:
        """Return the matches that meet the conditions that Arrow can check.

        :raises TooMuch: if it would read too many bytes
        """
        if not comparable or not matches.rows:
            return matches
        columns = _find_columns_read(comparable)
        values = matches.take(map(known_name, columns), Budget(self._context.limits.driver_bytes))
        return matches.where(holds(comparable, dict(zip(columns, values.values(), strict=True))))

    def _take_comparable(self, reached: Set[int]) -> list[Conjunct]:
        """Return the conditions on some sources that Arrow can check, and remove them from the open ones."""
        aliases = {self._block.alias(place) for place in reached}
        comparable = [part for part in self._conditions if part.aliases <= aliases and can_decide(part, self._block.kinds)]
        self._conditions = [part for part in self._conditions if part not in comparable]
        return comparable

    def _find_link(self, reached: Set[int], missing: Iterable[int]) -> _Link:
        """Return the smallest source that can be reached by keys.

        :raises Declined: if there is none
        """
        links = [link for link in (self._find_link_to(place, reached) for place in missing) if link is not None]
        if not links:
            raise Declined("no source can be reached by keys")
        return min(links, key=lambda link: (self._stored_rows(link.place), link.place))

    def _find_link_to(self, place: int, reached: Set[int]) -> _Link | None:
        block, link = self._block, _Link(place, [], [])
        known = {block.alias(other) for other in reached}
        for equality in block.node.join_graph.equalities:
            for side in (0, 1):
                mine, theirs = equality.columns[side], equality.texts[1 - side]
                if equality.aliases[side] != block.alias(place) or equality.aliases[1 - side] not in known or mine is None:
                    continue
                column = self._column(block.alias(place), mine[1])
                if column is None or column in dict(link.pairs):
                    continue
                if _can_match(block.kinds[column], self._kind(equality, 1 - side)):
                    link.pairs.append((column, theirs))
                    link.equalities.append(equality)
        return link if link.pairs else None

    def _column(self, alias: str, stored: str) -> SourceColumn | None:
        """Return the column of a source that stands for a column of its relation, or None if there is none."""
        place = next(place for place, source in enumerate(self._block.node.sources) if source.alias == alias)
        names = self._block.sources[place].columns
        return next((column for column in self._block.columns(place) if names[column[1]] == stored), None)

    def _kind(self, equality: Equality, side: int) -> DataType:
        """Return the type of one side of an equality."""
        column = equality.columns[side]
        if column is not None:
            return self._context.relations[column[0]].before.schema[column[1]].dataType
        return self._context.schema(Select(self._block.node.sources, (Item("k", equality.texts[side]),)))["k"].dataType

    def _stored_rows(self, place: int) -> int:
        return sum(batch.rows for batch in self._batches(place))

    def _batches(self, place: int) -> tuple[Batch, ...]:
        relation = self._block.sources[place].relation
        version = Version.BEFORE if place < self._at and relation in self._block.changed else Version.AFTER
        return self._context.relations[relation].batches(version)

    def _keyed(self, known: pa.Table, link: _Link, reached: Set[int]) -> tuple[pa.Table, pa.Table]:
        """Return the known rows that may match something, and their keys by the stored names of the columns."""
        block, at = self._block, link.place
        texts = [text for _, text in link.pairs if text not in self._plain]
        if texts:
            computed = self._expressions(known, texts, link, reached)
            known, results = known if computed.rows is None else known.take(pa.array(computed.rows)), computed.columns
        columns = {}
        for column, text in link.pairs:
            name = known_name(column)
            values = known[known_name(self._plain[text])] if text in self._plain else results[f"e{texts.index(text)}"]
            stored = block.arrow_types(at)[name]
            columns[block.stored_names(at)[name]] = values if values.type == stored else values.cast(pa.int64())
        keys = pa.table(columns)
        # NULL is equal to nothing.
        for name in keys.column_names:
            if keys[name].null_count:
                there = keys[name].is_valid()
                known, keys = known.filter(there), keys.filter(there)
        return known, keys

    def _expressions(self, known: pa.Table, texts: Sequence[str], link: _Link, reached: Set[int]) -> ComputedValues:
        """Evaluate keys that are expressions, for the rows that meet all conditions on known rows."""
        aliases = {self._block.alias(place) for place in reached}
        conditions = [condition for condition in self._conditions if condition.aliases <= aliases]
        self._conditions = [condition for condition in self._conditions if condition not in conditions]
        names = {f"{equality.texts[0]} = {equality.texts[1]}" for equality in link.equalities}
        read = [part for part in self._block.node.join_graph.conjuncts if part.text in names] + conditions
        columns = [column for column in self._block.kinds if column[0] in aliases and any(column in part.columns for part in read)]
        values = [known[known_name(column)] for column in columns]
        rows = JoinedColumns(columns, [self._block.kinds[column] for column in columns], values, known.num_rows)
        return compute_items(rows, [part.text for part in conditions], texts, self._context)

    def _find_matches(self, known: pa.Table, keys: pa.Table, place: int, most: int) -> Matches:
        pairs = matching_pairs(self._batches(place), keys, most)
        return Matches(known, pairs, self._block.arrow_types(place), self._block.stored_names(place))


def _find_columns_read(conditions: Iterable[Conjunct]) -> list[SourceColumn]:
    """Return the columns that some conditions read."""
    return list(dict.fromkeys(column for condition in conditions for column in condition.columns))


def _can_match(one: DataType, other: DataType) -> bool:
    """Return True if values of two types are equal for Spark exactly when they are equal for Arrow."""
    kinds = type_text(one), type_text(other)
    return same_kind(*kinds) and (kinds[0] in _EQUAL_AS_STORED or kinds[0].startswith(("decimal(", "time(")))


def _parts(batch: Batch, names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield some columns of the rows of a batch."""
    if batch.table is not None:
        yield batch.table.select(names)
    elif batch.store is not None:
        types = arrow_schema(batch.schema)
        for part in batch.store.read_in_parts(batch.files, _ROWS_AT_A_TIME, names):
            yield cast_to_schema(part, pa.schema([types.field(name) for name in names]))
