"""The front end for stream programs, also with SQL text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from cachetools import LRUCache

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.compiler.connector_checks import ConnectorCheck
from airflow_pipelines.compiler.stream_binding import BoundStreams, bind_streams
from airflow_pipelines.compiler.stream_relations import (
    check_inputs,
    declared_text,
    fed_by_streams,
    output_tables,
    upstream_relations,
    with_ends,
    with_spark_types,
)
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.stream_nodes import GRAPH_COLUMNS, SOURCE_COLUMNS, StreamGraph, StreamOutput
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.fingerprints import Fingerprints, digest
from airflow_pipelines.program.info import ProgramInfo, RelationInfo
from airflow_pipelines.program.relations import Table, View, ViewKind
from airflow_pipelines.program.sources import ProgramSource, SourceFile
from airflow_pipelines.program.streams import (
    STREAM_END,
    STREAM_PROGRAM,
    STREAM_SOURCE,
    RelationInput,
    RelationOutput,
    StreamProgram,
    StreamSource,
)
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.plan.ir.node import ColumnTypes, Node
from airflow_pipelines.sql.plan.ir.stage import Stage, ViewPlan
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.sql.program.statement_texts import statement_texts

READER = "reader"
"""The connector of the hidden table of each source."""
END = "end"
"""The connector of the hidden table of each relation input that ends."""
_TYPES: Mapping[str, str] = {"int": "INTEGER", "tinyint": "TINYINT", "bigint": "BIGINT", "string": "VARCHAR", "binary": "VARBINARY"}

_RECENT: Final[LRUCache[tuple[tuple[SourceFile, ...], tuple[str, ...]], BoundStreams]] = LRUCache(16)
"""The stream programs executed last, by their files and arguments.

A host compiles most programs twice: to check them, and to run them.
"""
_RECENT_LOCK: Final = Lock()


@dataclass(frozen=True, slots=True)
class StreamFrontEnd:
    """A :class:`~airflow_pipelines.engine.front_end.FrontEnd` for programs with a stream program.

    :param sessions: any sessions of the application whose analyzer is used
    :param check_connector: called for each declared connector with its relation's schema
    """

    sessions: SparkSessions
    check_connector: ConnectorCheck | None

    def compile(self, source: ProgramSource, limit_s: float = math.inf) -> Program:
        """Compile a program. Execute the stream program in a process of its own; run no Spark job.

        :param source: its files, its SQL text and its Python module
        :param limit_s: the seconds of processor time that the stream program, and the views of the SQL text, may take
        :returns: the program
        :raises ProgramErrors: if there are errors, with their places; those of the SQL text only if the stream program has none
        """
        bound = _bind(source, limit_s)
        tables = output_tables(bound.program)
        sql = compile_program(source.sql, self.sessions, self.check_connector, source.python_functions, limit_s, tables)
        check_inputs(bound.program, sql)
        program = _combine(with_ends(with_spark_types(bound.program, sql.schemas), sql), sql)
        return replace(program, warnings=(*sql.warnings, *bound.warnings))

    def late_relations(self, source: ProgramSource) -> frozenset[str]:
        """Return the tables and views of the SQL text whose rows may come too late.

        :param source: the source of a program that compiled
        :returns: their canonical names
        :raises ProgramErrors: if the source cannot be read
        """
        return parse_program(source.sql, given=output_tables(_bind(source).program)).late_relations

    def declarations(self, source: ProgramSource) -> Mapping[str, str]:
        """Return the text of the declarations of a program's relations.

        :param source: the source of a program that compiled
        :returns: the statement or call that declares each relation, by canonical name
        :raises ProgramErrors: if the source cannot be read
        """
        streams = _bind(source).program
        statements = statement_texts(source.sql, output_tables(streams))
        return {**statements, **{output.relation: declared_text(output) for output in streams.outputs}}


def _bind(source: ProgramSource, limit_s: float = math.inf) -> BoundStreams:
    key = source.stream_files, source.stream_arguments
    with _RECENT_LOCK:
        known = _RECENT.get(key)
    if known is None:
        known = bind_streams(source.stream_files, source.stream_arguments, limit_s)
        with _RECENT_LOCK:
            _RECENT[key] = known
    return known


def _combine(streams: StreamProgram, sql: Program) -> Program:
    """Return a stream program and the program of a SQL text as one program."""
    sources = {source.table: _source_table(source) for source in streams.sources}
    messages = {**sources, **{each.table: _end_table(each) for each in streams.inputs if each.ends_with}}
    fed = fed_by_streams(streams, sql)
    own_views = {view.name: view for view in _views(streams, sql.schemas)}
    graph = RelationSchema(STREAM_PROGRAM, _columns(GRAPH_COLUMNS))
    hidden = {table.name: RelationSchema(table.name, table.columns) for table in messages.values()} | {STREAM_PROGRAM: graph}
    return replace(
        sql,
        tables={**sql.tables, **messages},
        views={
            **{name: view for name, view in sql.views.items() if name not in fed},
            **own_views,
            **{name: view for name, view in sql.views.items() if name in fed},
        },
        schemas={**sql.schemas, **hidden},
        plans={**sql.plans, **{plan.view: plan for plan in _plans(streams)}},
        fingerprints=_compute_fingerprints(streams, sql, fed, messages),
        info=_info(sql.info, streams, sql.schemas, sources),
        streams=streams,
    )


def _columns(types: ColumnTypes) -> tuple[Column, ...]:
    return tuple(Column(name, ColumnType(_TYPES[kind], nullable=False)) for name, kind in types)


def _source_table(source: StreamSource) -> Table:
    connector = Connector(
        source.table, READER, ConnectorDirection.INPUT, STREAM_SOURCE, transport_config={"uid": source.uid, "kind": source.kind}
    )
    return Table(source.table, _columns(SOURCE_COLUMNS), append_only=True, connectors=(connector,))


def _end_table(each: RelationInput) -> Table:
    connector = Connector(
        each.table, END, ConnectorDirection.INPUT, STREAM_END, transport_config={"uid": each.uid, "ends_with": each.ends_with}
    )
    return Table(each.table, _columns(SOURCE_COLUMNS), append_only=True, connectors=(connector,))


def _views(streams: StreamProgram, schemas: Mapping[str, RelationSchema]) -> list[View]:
    graph = View(STREAM_PROGRAM, ViewKind.LOCAL, _columns(GRAPH_COLUMNS), tuple(sorted(streams.reads)))
    outputs = [
        View(output.relation, ViewKind.MATERIALIZED, schemas[output.relation].columns, (STREAM_PROGRAM,))
        for output in streams.outputs
    ]
    return [graph, *outputs]


def _plans(streams: StreamProgram) -> list[ViewPlan]:
    graph = _plan(STREAM_PROGRAM, "the operators of the stream program", GRAPH_COLUMNS, StreamGraph(streams))
    return [graph, *(_plan(each.relation, declared_text(each), each.columns, StreamOutput(each)) for each in streams.outputs)]


def _plan(view: str, text: str, columns: ColumnTypes, node: Node) -> ViewPlan:
    stage = Stage(view, columns, node)
    return ViewPlan(view, text, columns, (stage,), stage)


def _compute_fingerprints(
    streams: StreamProgram, sql: Program, fed: Mapping[str, frozenset[str]], messages: Mapping[str, Table]
) -> Fingerprints:
    """Return the fingerprints of the whole program.

    Those of hidden relations do not depend on the code: which operators begin anew is decided by operator.
    """
    fingerprints = sql.fingerprints
    relations = {**fingerprints.tables, **fingerprints.views}
    outputs = {each.relation: _output_fingerprint(streams, each, relations, sql.schemas) for each in streams.outputs}
    views = {name: digest([fingerprints.views[name], {read: outputs[read] for read in reads}]) for name, reads in fed.items()}
    connectors = [connector for table in messages.values() for connector in table.connectors]
    return replace(
        fingerprints,
        tables={**fingerprints.tables, **{name: digest({"kind": "stream source", "columns": SOURCE_COLUMNS}) for name in messages}},
        views={
            **fingerprints.views,
            **views,
            **outputs,
            STREAM_PROGRAM: digest({"kind": "stream program", "columns": GRAPH_COLUMNS}),
        },
        input_connectors={
            **fingerprints.input_connectors,
            **{connector.endpoint: _connector_fingerprint(connector, fingerprints) for connector in connectors},
        },
        owners={**fingerprints.owners, **{connector.endpoint: connector.relation for connector in connectors}},
        operators={
            each.uid: digest([each.fingerprint, each.inputs, [each.key_type, each.max_parallelism] if each.is_keyed else None])
            for each in streams.operators
        },
    )


def _connector_fingerprint(connector: Connector, sql: Fingerprints) -> str:
    """Return the fingerprint of a hidden connector. That of an end changes if any connector changes that it ends with."""
    described: dict[str, object] = {"stream source": connector.transport_config}
    if connector.transport == STREAM_END:
        described["connectors"] = [sql.input_connectors[name] for name in connector.transport_config["ends_with"]]
    return digest(described)


def _output_fingerprint(
    streams: StreamProgram, output: RelationOutput, relations: Mapping[str, str], schemas: Mapping[str, RelationSchema]
) -> str:
    """Return the fingerprint of an output.

    It does not depend on the program's code, so that rows made by the old code are kept, but on the relations that the program
    reads.
    """
    return digest(
        {
            "kind": "stream output",
            "columns": [[column.name, column.type.to_wire()] for column in schemas[output.relation].columns],
            "primary_key": output.primary_key,
            "reads": {name: relations[name] for name in upstream_relations(streams, output.uid)},
        }
    )


def _info(
    info: ProgramInfo, streams: StreamProgram, schemas: Mapping[str, RelationSchema], sources: Mapping[str, Table]
) -> ProgramInfo:
    """Return the description of the whole program.

    Outputs are shown as views. Hidden relations are not shown, but the connectors of sources are.
    """
    outputs = [
        RelationInfo(
            each.relation,
            schemas[each.relation].columns,
            each.relation != each.relation.lower(),
            materialized=True,
            primary_key=each.primary_key,
        )
        for each in streams.outputs
    ]
    connectors = [connector for table in sources.values() for connector in table.connectors]
    return replace(
        info,
        outputs=(*info.outputs[:-1], *outputs, info.outputs[-1]),
        connectors=(*info.connectors, *connectors),
        streams=streams,
    )
