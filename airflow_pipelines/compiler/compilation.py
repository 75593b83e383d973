"""The state of one program's compilation: schemas, plans and errors so far, shared by the parts of the compiler."""

from __future__ import annotations

from airflow_pipelines.compiler.spark_analyzer import SparkAnalyzer
from airflow_pipelines.compiler.time_analysis import TimeAnalysis
from airflow_pipelines.engine.spark.analysis import Analysis, QueryRefused, is_unknown_name
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.program.messages import COMPILATION_ERROR, ProgramMessage
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.ir.stage import ViewPlan
from airflow_pipelines.sql.program.declarations import ParsedProgram, ViewDeclaration
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure
from airflow_pipelines.sql.syntax.hints import string_hint


class Compilation:
    """A program that is being compiled.

    ``messages`` are the errors so far; compilation goes on after an error, so that all of them are reported at once. ``schemas``
    and ``types`` (in Spark's terms) are those of the relations with correct declarations, ``plans`` those of the views.
    """

    def __init__(self, program: ParsedProgram, analyzer: SparkAnalyzer) -> None:
        """Start a compilation.

        :param analyzer: the analyzer of a session that only this compilation uses
        """
        self.program = program
        self.source = SourceText(program.text)
        self.analyzer = analyzer
        self.analysis = Analysis(analyzer.session)
        self.messages: list[ProgramMessage] = []
        self.schemas: dict[str, RelationSchema] = {}
        self.types: dict[str, ColumnTypes] = {}
        self.plans: dict[str, ViewPlan] = {}
        tables = (*program.tables.values(), *program.given.values())
        self.append_only = {table.name for table in tables if table.append_only and table.primary_key is None}
        self.time = TimeAnalysis(analyzer, self.analysis, self.note)

    def add_schema(self, schema: RelationSchema) -> None:
        """Add the schema of a table or view."""
        self.schemas[schema.name] = schema
        self.types[schema.name] = tuple((field.name, type_text(field.dataType)) for field in spark_schema(schema).fields)

    def note(self, span: Span | None, message: str) -> None:
        """Note an error at a place in the program's text.

        :param span: the place, or None for no place
        :param message: the error and its remedy
        """
        self.messages.append(error_message(self.source, span, message))

    def note_in(self, view: ViewDeclaration, start: int, end: int, message: str) -> None:
        """Note an error at a place in a view's query.

        :param view: the view
        :param start: the offset of the place's first character in the query
        :param end: the offset behind its last character
        :param message: the error and its remedy
        """
        self.note(self.source.span(*view.place(start, end)), message)

    def note_refused(self, view: ViewDeclaration, refused: QueryRefused | SyntaxFailure) -> None:
        """Note the reason why Spark, or a rewrite, refuses a view's query."""
        span = self.source.span(*view.place(refused.start, refused.end))
        hint = string_hint(self.source.slice(span)) if is_unknown_name(refused) else ""
        self.note(span, refused.message + hint)


def error_message(source: SourceText, span: Span | None, message: str) -> ProgramMessage:
    """Return the message for a semantic error of a program.

    :param source: the program's text
    :param span: the error's place there, or None for no place
    :param message: the error and its remedy
    :returns: the message with the text around its place
    """
    if span is None:
        return ProgramMessage(None, COMPILATION_ERROR, message)
    return source.message(span, COMPILATION_ERROR, message)
