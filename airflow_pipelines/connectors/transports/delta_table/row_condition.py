"""Conditions that DataFusion evaluates after the rows were read: any expression of its SQL, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.expressions.pushdown import (
    ConditionProblem,
    Expression,
    NotWhileReadingError,
    check_condition,
    push_condition,
)

if TYPE_CHECKING:
    from datafusion import SessionContext

PROBLEM: Final = "__problem"
"""The column with the reason why a condition cannot be evaluated for a row; NULL where it can."""
_ROWS: Final = "rows"
_OF_ROWS: Final = frozenset({"Projection", "Filter", "TableScan", "EmptyRelation"})
"""The nodes of a plan that evaluates each row by itself."""
_UNKNOWN: Final = re.compile(r"No field named (\"(?:[^\"]|\"\")+\"|[^\s.]+)")
_AROUND: Final = re.compile(r"^DataFusion error: |Optimizer rule '\w+' failed\s+caused by\s+|\s+at Line: \d+, Column: \d+")
_LONGEST: Final = 200


def check_syntax(text: str) -> None:
    """Check that a text is an expression.

    :param text: the condition
    :raises ConditionProblem: when it is none
    """
    try:
        check_condition(text)
    except NotWhileReadingError as problem:
        # DataFusion accepts more than that parser.
        try:
            context = _context(text)
        except ConditionProblem:
            raise problem from None
        try:
            context.from_arrow(pa.table({"x": pa.nulls(0)}), name=_ROWS).parse_sql_expr(text)
        except Exception as error:
            if "ParserError" in str(error):
                raise problem from error


@dataclass(frozen=True, slots=True)
class Decided:
    """The results of a condition for some rows.

    :param is_met: a boolean for each row, True if it meets the condition, which NULL does not
    :param problems: for each row the reason why the condition cannot be evaluated for it, or NULL
    """

    is_met: pa.Array
    problems: pa.Array


def add_problems(rows: pa.Table, problems: pa.Array) -> pa.Table:
    """Add :data:`PROBLEM` to rows as the last column.

    :param rows: the rows, which may have that column already
    :param problems: for each row the reason why a condition cannot be evaluated for it, or NULL
    """
    if PROBLEM in rows.column_names:
        return rows.drop_columns([PROBLEM]).append_column(PROBLEM, pc.coalesce(rows.column(PROBLEM), problems))
    return rows.append_column(PROBLEM, problems)


class RowCondition:
    """A condition on the rows of a table."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        """Plan the condition.

        :param text: the condition in DataFusion's SQL; names without quotes have no case
        :param schema: the schema of the rows
        :raises ConditionProblem: when it is no condition on a row, or names a column that is not there
        """
        self._text = text
        self._context = _context(text)
        self._folded = {name: name.lower() for name in schema.names if name.lower() not in schema.names}
        self.columns = self._plan(schema)
        """The columns that it reads."""

    def filter_rows(self, rows: pa.Table) -> pa.Table:
        """Remove the rows that do not meet the condition.

        :param rows: the rows, with at least its columns, and maybe with :data:`PROBLEM` of another condition
        :returns: the other rows, and those for which it cannot be evaluated, which have a value in the column :data:`PROBLEM`
        """
        decided = self.decide(rows)
        marked = add_problems(rows, decided.problems)
        return marked.filter(pc.or_(decided.is_met, pc.is_valid(marked.column(PROBLEM))))

    def decide(self, rows: pa.Table) -> Decided:
        """Evaluate the condition for each row.

        :param rows: the rows, with at least its columns
        """
        # DataFusion sees no rows in a table without columns.
        read = rows.select(self.columns) if self.columns else pa.table({"__row": pa.nulls(rows.num_rows, pa.int8())})
        parts = list(self._parts(read))
        met = pa.concat_arrays([pa.array([], pa.bool_()), *(part.is_met for part in parts)])
        return Decided(met, pa.concat_arrays([pa.array([], pa.string()), *(part.problems for part in parts)]))

    def _parts(self, rows: pa.Table) -> Iterator[Decided]:
        try:
            met = self._run(rows)
        except Exception as error:  # noqa: BLE001
            # The library has no other class for errors of values.
            if rows.num_rows < 2:
                problem = f"the condition {_shorten(self._text)!r} cannot be evaluated: {_describe_error(error)}"
                yield Decided(pa.array([False] * rows.num_rows), pa.array([problem] * rows.num_rows, pa.string()))
                return
            middle = rows.num_rows // 2
            yield from self._parts(rows.slice(0, middle))
            yield from self._parts(rows.slice(middle))
            return
        yield Decided(met, pa.nulls(len(met), pa.string()))

    def _run(self, rows: pa.Table) -> pa.Array:
        self._register(rows)
        result = self._context.sql(f"SELECT (\n{self._text}\n) AS is_met FROM {_ROWS}").to_arrow_table()
        return pc.fill_null(result.column("is_met").combine_chunks().cast(pa.bool_()), False)

    def _plan(self, schema: pa.Schema) -> tuple[str, ...]:
        try:
            self._register(schema.empty_table())
            self._context.table(_ROWS).parse_sql_expr(self._text)
            chosen = self._context.sql(f"SELECT 1 FROM {_ROWS} WHERE (\n{self._text}\n)")
            # Evaluate it: an expression that cannot be used for a single row, such as a window, fails only then.
            chosen.collect()
        except Exception as error:
            raise self._problem(error, schema) from error
        nodes = list(_nodes(chosen.optimized_logical_plan()))
        foreign = [type(node).__name__ for node in nodes if type(node).__name__ not in _OF_ROWS]
        if foreign:
            raise ConditionProblem(f"{_shorten(self._text)!r} is no condition on a row: it has a query in it")
        given = {number: name for number, name in enumerate([*schema.names, *self._folded])}
        scans = [node for node in nodes if type(node).__name__ == "TableScan"]
        used = {given[number] for scan in scans for number, _ in scan.projection()}
        # A name must also exist if the plan does not read its column, as in x = NULL.
        text = self._text.replace('""', '"')
        return tuple(name for name in schema.names if name in used or _has_word(text, name))

    def _register(self, rows: pa.Table) -> None:
        for name, folded in self._folded.items():
            if name in rows.column_names:
                rows = rows.append_column(folded, rows.column(name))
        if self._context.table_exist(_ROWS):
            self._context.deregister_table(_ROWS)
        self._context.from_arrow(rows, name=_ROWS)

    def _problem(self, error: Exception, schema: pa.Schema) -> ConditionProblem:
        unknown = _UNKNOWN.search(str(error))
        if unknown is not None:
            return ConditionProblem(
                f"the table has no column {unknown[1].strip(chr(34))!r}; its columns: {', '.join(schema.names)}"
            )
        return ConditionProblem(f"{_shorten(self._text)!r} is no condition on rows of the table: {_describe_error(error)}")


def split_conditions(texts: Iterable[str], schema: pa.Schema) -> tuple[Expression | None, tuple[RowCondition, ...]]:
    """Split conditions into those that are evaluated while files are read, and those that are evaluated after that.

    :param texts: the conditions, all of which rows have to meet
    :param schema: the schema of the rows
    :raises ConditionProblem: when one is no condition, or names a column that is not there
    """
    every: Expression | None = None
    rest = []
    for text in texts:
        part = push_condition(text, schema)
        if part.expression is not None:
            every = part.expression if every is None else every & part.expression
        if not part.is_whole:
            rest.append(RowCondition(text, schema))
    return every, tuple(rest)


def plan_condition(text: str, schema: pa.Schema) -> Expression | RowCondition:
    """Return an object that evaluates a condition as a whole: Arrow's where possible, DataFusion's otherwise.

    :param text: the condition
    :param schema: the schema of the rows
    :raises ConditionProblem: when it is none, or names a column that is not there
    """
    part = push_condition(text, schema)
    return part.expression if part.is_whole and part.expression is not None else RowCondition(text, schema)


def _context(text: str) -> SessionContext:
    try:
        from datafusion import SessionConfig, SessionContext
    except ModuleNotFoundError as error:
        raise ConditionProblem(
            f"{_shorten(text)!r} needs the package datafusion: pip install 'airflow-pipelines[delta]', or use comparisons only"
        ) from error
    # A single partition keeps the order of the rows.
    return SessionContext(SessionConfig().with_target_partitions(1))


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan.to_variant()
    for each in plan.inputs():
        yield from _nodes(each)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def _describe_error(error: Exception) -> str:
    return _shorten(_AROUND.sub("", str(error)).partition("\n")[0]) or type(error).__name__


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
