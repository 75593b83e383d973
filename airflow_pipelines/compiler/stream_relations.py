"""The relations of a stream program in a pipeline: those that it makes and reads, and the order of evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.program.messages import COMPILATION_ERROR, ProgramErrors, ProgramMessage
from airflow_pipelines.program.names import display
from airflow_pipelines.program.relations import Table
from airflow_pipelines.program.streams import RelationOutput, StreamProgram
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.sql.plan.properties.append_only import append_only_relations
from airflow_pipelines.sql.program.parser import parse_program


def output_tables(streams: StreamProgram) -> tuple[Table, ...]:
    """Return the relations that a stream program makes, as if they were declared.

    :param streams: the stream program, with the types of columns as it wrote them
    :returns: one table for each output
    :raises ProgramErrors: if names or types are wrong; lists all errors
    """
    messages: list[ProgramMessage] = []
    tables: dict[str, Table] = {}
    for output in streams.outputs:
        if output.relation in tables:
            messages.append(_error(f"{display(output.relation)} is made twice: two operators have to_relation() for it"))
            continue
        try:
            tables[output.relation] = _table(output)
        except ProgramErrors as errors:
            messages += [_error(f"{_call(output)}: {message.message}") for message in errors.messages]
    if messages:
        raise ProgramErrors(messages)
    return tuple(tables.values())


def _table(output: RelationOutput) -> Table:
    columns = [f"{_quote(name)} {kind}" for name, kind in output.columns]
    key = [] if output.primary_key is None else [f"PRIMARY KEY ({', '.join(map(_quote, output.primary_key))})"]
    parsed = parse_program(f"CREATE TABLE {_quote(output.relation)} (\n{f',{chr(10)}'.join([*columns, *key])}\n)")
    table = parsed.tables.get(output.relation)
    if table is None or len(parsed.tables) > 1 or len(table.columns) != len(columns) or parsed.views:
        raise ProgramErrors([_error("the types of its columns are no types")])
    if table.primary_key != output.primary_key:
        raise ProgramErrors([_error("its key is given by the parameter primary_key, not among the columns")])
    for column in table.columns:
        if column.default is not None or column.lateness is not None:
            clause = "DEFAULT" if column.default is not None else "LATENESS"
            raise ProgramErrors([_error(f"column {display(column.name)} has {clause}, which is for tables that SQL declares")])
    plain = tuple(Column(column.name, column.type, column.case_sensitive) for column in table.columns)
    return replace(table, columns=plain, append_only=table.primary_key is None, span=None)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _call(output: RelationOutput) -> str:
    return f"to_relation({output.relation!r}, ...)"


def with_spark_types(streams: StreamProgram, schemas: Mapping[str, RelationSchema]) -> StreamProgram:
    """Return the stream program with the types of its outputs' columns in Spark's terms.

    :param streams: the stream program
    :param schemas: the schemas of its outputs
    """
    outputs = []
    for output in streams.outputs:
        fields = spark_schema(schemas[output.relation]).fields
        outputs.append(replace(output, columns=tuple((field.name, type_text(field.dataType)) for field in fields)))
    return replace(streams, outputs=tuple(outputs))


def with_ends(streams: StreamProgram, sql: Program) -> StreamProgram:
    """Return the stream program with the connectors whose end is the end of each relation that it reads.

    A relation ends with all connectors of the tables that it consists of. A table without a connector gets its rows from requests,
    and may always get more; a view that follows the clock changes without rows.

    :param streams: the stream program
    :param sql: the program of its pipeline's SQL text
    """
    inputs = [replace(each, ends_with=() if each.stays_open else _find_ends(each.relation, sql)) for each in streams.inputs]
    return replace(streams, inputs=tuple(inputs))


def _find_ends(relation: str, sql: Program) -> tuple[str, ...]:
    if relation in sql.views and any(marker.follows_clock for marker in sql.markers):
        return ()
    tables = [sql.tables[name] for name in sorted({relation, *_find_reached(relation, sql)}) if name in sql.tables]
    if not all(table.connectors for table in tables):
        return ()
    return tuple(connector.endpoint for table in tables for connector in table.connectors)


def declared_text(output: RelationOutput) -> str:
    """Return the call by which a stream program makes a relation, for people.

    :param output: the relation
    """
    columns = ", ".join(f"{display(name)} {kind}" for name, kind in output.columns)
    key = "" if output.primary_key is None else f", primary_key={list(output.primary_key)!r}"
    return f"to_relation({output.relation!r}, {columns!r}{key})"


def fed_by_streams(streams: StreamProgram, sql: Program) -> Mapping[str, frozenset[str]]:
    """Return the views of the SQL text that depend on relations that a stream program makes.

    :param streams: the stream program
    :param sql: the program of the SQL text
    :returns: by view, the relations of the stream program that it reads, directly or through others
    """
    made = {output.relation for output in streams.outputs}
    feeds = {name: frozenset(made.intersection(_find_reached(name, sql))) for name in sql.views}
    return {name: outputs for name, outputs in feeds.items() if outputs}


def _find_reached(name: str, sql: Program) -> frozenset[str]:
    """Return all relations that a view reads, directly or through others."""
    waiting, seen = [name], set[str]()
    while waiting:
        current = waiting.pop()
        for read in sql.views[current].reads if current in sql.views else ():
            if read not in seen:
                seen.add(read)
                waiting.append(read)
    return frozenset(seen)


def check_inputs(streams: StreamProgram, sql: Program) -> None:
    """Check the relations that a stream program reads of its pipeline.

    :param streams: the stream program
    :param sql: the program of the SQL text
    :raises ProgramErrors: if relations do not exist, depend on relations that the stream program itself makes, or lose rows
        although the program does not read changes
    """
    made, fed = {output.relation for output in streams.outputs}, fed_by_streams(streams, sql)
    append_only = append_only_tables_and_views(streams, sql)
    messages = []
    for each in streams.inputs:
        name = display(each.relation)
        if each.relation in made or each.relation in fed:
            path = " -> ".join(map(display, _path(each.relation, made, sql)))
            messages.append(
                f"from_relation({each.relation!r}) reads what the stream program itself makes: {path}. A stream program cannot"
                " be part of a cycle: connect the streams in the program, or move a part of it to another pipeline"
            )
        elif each.relation not in sql.tables and each.relation not in sql.views:
            known = ", ".join(display(known) for known in sorted({*sql.tables, *sql.views})) or "none: the pipeline has no SQL text"
            messages.append(f"from_relation({each.relation!r}): Object '{each.relation}' not found. Tables and views: {known}")
        elif not each.with_changes and each.relation not in append_only:
            messages.append(
                f"from_relation({each.relation!r}): {name} loses rows when they are updated or deleted. Write"
                f" from_relation({each.relation!r}, changes=True) and look at row.get_row_kind(), or declare the table"
                " append-only"
            )
    if messages:
        raise ProgramErrors([_error(message) for message in messages])


def _path(relation: str, made: set[str], sql: Program) -> Sequence[str]:
    """Return the shortest path by which a relation depends on one that a stream program makes, from the output on."""
    paths: list[list[str]] = [[relation]]
    seen = {relation}
    for path in paths:
        if path[0] in made:
            return path
        for read in sql.views[path[0]].reads if path[0] in sql.views else ():
            if read not in seen:
                seen.add(read)
                paths.append([read, *path])
    return [relation]


def append_only_tables_and_views(streams: StreamProgram, sql: Program) -> frozenset[str]:
    """Return the relations of a pipeline that never lose a row.

    :param streams: its stream program
    :param sql: the program of its SQL text
    """
    known = {table.name for table in sql.tables.values() if table.append_only and table.primary_key is None}
    known |= {output.relation for output in streams.outputs if output.primary_key is None}
    for name in sql.views:
        known |= append_only_relations(sql.plans[name], known)
    return frozenset(known)


def upstream_relations(streams: StreamProgram, uid: str) -> frozenset[str]:
    """Return the relations of the pipeline that an operator reads, directly or through others.

    :param streams: the stream program
    :param uid: the uid of the operator
    """
    operators = {operator.uid: operator for operator in streams.operators}
    waiting, seen = [uid], {uid}
    while waiting:
        for read in operators[waiting.pop()].inputs:
            if read not in seen:
                seen.add(read)
                waiting.append(read)
    return frozenset(each.relation for each in streams.inputs if each.uid in seen)


def _error(message: str) -> ProgramMessage:
    return ProgramMessage(None, COMPILATION_ERROR, message)
