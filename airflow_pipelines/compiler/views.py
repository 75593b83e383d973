"""The compilation of views: each query is analyzed, its columns are determined, and it is planned.

The views of a cycle are planned together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from airflow_pipelines.compiler.analyze_query import AnalyzedQuery, analyze_query
from airflow_pipelines.compiler.compilation import Compilation
from airflow_pipelines.compiler.view_columns import fits_declaration, view_columns
from airflow_pipelines.engine.spark.analysis import QueryRefused
from airflow_pipelines.engine.spark.failures import spark_complaint
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS, is_stack_overflow
from airflow_pipelines.program.names import display
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.positions import Places
from airflow_pipelines.sql.plan.properties.append_only import append_only_relations
from airflow_pipelines.sql.plan.recursion import CycleMember, plan_query, plan_recursive_views
from airflow_pipelines.sql.program.declarations import ViewDeclaration
from airflow_pipelines.sql.program.safety import nondeterministic_parts, unsafe_part
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edited


@dataclass(frozen=True, slots=True)
class _PlannerInput:
    """A view as input of the planner: its query, and the columns of all relations that the query reads."""

    member: CycleMember
    reads: dict[str, ColumnTypes]
    places: Places


class ViewCompiler:
    """The compiler of a program's views, which adds them in their order."""

    def __init__(self, compilation: Compilation) -> None:
        self._compilation = compilation
        self._declared: set[str] = set()
        self._inputs: dict[str, _PlannerInput] = {}

    def add(self, view: ViewDeclaration) -> None:
        """Add a view. A view that is declared recursive is added by its declaration only; :meth:`add_cycles` compiles its query."""
        if view.declared is not None:
            self._add_schema(view, RelationSchema(view.name, view.declared))
            return
        with self._noting(view):
            analyzed = self._analyze(view)
            columns = view_columns(self._compilation, view, analyzed.analyzed) if analyzed is not None else None
            if analyzed is None or columns is None:
                return
            self._add_schema(view, RelationSchema(view.name, columns))
            if not self._compilation.messages:
                self._plan(view, analyzed)

    def add_cycles(self) -> None:
        """Check the queries of the views that are declared recursive against their declarations, and plan them."""
        declared = [view for view in self._compilation.program.views.values() if view.declared is not None]
        for cycle in dict.fromkeys(view.cycle or (view.name,) for view in declared):
            views = [view for view in declared if view.name in cycle]
            for view in views:
                self._check_recursive(view)
            if not self._compilation.messages:
                self._plan_cycle(views, cycle)

    def _analyze(self, view: ViewDeclaration) -> AnalyzedQuery | None:
        """Return the view's query as both strategies evaluate it, or None if there is an error."""
        compilation = self._compilation
        if any(read not in compilation.schemas for read in view.reads):
            # A relation that it reads has errors already; consequential errors would hide the cause.
            return None
        try:
            tree = parse_query(view.query)
        except SyntaxFailure as failure:
            compilation.note_in(view, failure.start, failure.end, failure.message)
            return None
        unsafe = unsafe_part(tree, view.query)
        if unsafe is not None:
            compilation.note_in(view, unsafe.start, unsafe.end, unsafe.message)
            return None
        nondeterministic = list(nondeterministic_parts(tree, view.query))
        for part in nondeterministic:
            compilation.note_in(view, part.start, part.end, part.message)
        self._declare(view.reads)
        columns = {name for read in view.reads for name in compilation.schemas[read].column_names}
        clock = partial(compilation.time.clock_edits, columns=columns)
        try:
            query = analyze_query(Edited(view.query), compilation.analyzer, compilation.analysis, clock)
        except (QueryRefused, SyntaxFailure) as refused:
            compilation.note_refused(view, refused)
            return None
        if not query.analyzed.deterministic and not nondeterministic:
            message = f"The query of {display(view.name)} gives another answer each time, so it cannot be maintained"
            compilation.note(view.span, message)
        return query

    def _declare(self, reads: Sequence[str]) -> None:
        """Let the session's queries read relations."""
        for read in reads:
            if read not in self._declared:
                self._declared.add(read)
                self._compilation.analysis.declare(self._compilation.schemas[read])

    def _add_schema(self, view: ViewDeclaration, schema: RelationSchema) -> None:
        self._compilation.add_schema(schema)
        self._compilation.time.add_view(view, schema)

    def _plan(self, view: ViewDeclaration, analyzed: AnalyzedQuery) -> None:
        compilation = self._compilation
        given = self._inputs[view.name] = self._make_planner_input(view, analyzed)
        query, columns, reads = given.member.query, compilation.types[view.name], given.reads
        plan = plan_query(
            view.name, query, reads, columns, tuple(reads), compilation.analyzer, compilation.append_only, given.places
        )
        compilation.plans[view.name] = compilation.time.finish(view, plan)
        compilation.append_only |= append_only_relations(compilation.plans[view.name], compilation.append_only)

    def _check_recursive(self, view: ViewDeclaration) -> None:
        compilation = self._compilation
        with self._noting(view):
            analyzed = self._analyze(view)
            if analyzed is not None and fits_declaration(compilation, view, analyzed.analyzed) and not compilation.messages:
                self._inputs[view.name] = self._make_planner_input(view, analyzed)

    def _plan_cycle(self, views: Sequence[ViewDeclaration], cycle: Sequence[str]) -> None:
        """Plan the views of a cycle, those declared recursive and the others."""
        compilation = self._compilation
        declared = [view.name for view in views]
        others = [name for name, view in compilation.program.views.items() if name in cycle and view.declared is None]
        given = {name: self._inputs[name] for name in (*declared, *others)}
        outside = {name: kinds for one in given.values() for name, kinds in one.reads.items() if name not in cycle}
        with self._noting(views[0]):
            plans = plan_recursive_views(
                [given[name].member for name in declared], [given[name].member for name in others], outside, compilation.analyzer
            )
            compilation.plans |= {view.name: compilation.time.finish(view, plans[view.name]) for view in views}

    def _make_planner_input(self, view: ViewDeclaration, analyzed: AnalyzedQuery) -> _PlannerInput:
        compilation = self._compilation
        query, places = analyzed.query.text, self._places(view, analyzed.query)
        reads = {name: compilation.types[name] for name in view.reads}
        if analyzed.reads_clock:
            query, markers = compilation.time.with_markers(query)
            places = places.of_other_text(query)
            reads |= {marker.relation: ((marker.column, marker.type),) for marker in markers}
        names = tuple(str(field["name"]) for field in analyzed.analyzed.fields)
        return _PlannerInput(CycleMember(view.name, query, names, compilation.types[view.name]), reads, places)

    def _places(self, view: ViewDeclaration, query: Edited) -> Places:
        """Return the places in the program of the parts of a view's analyzed query."""
        return Places(query.text, self._compilation.source, lambda start, end: view.place(*query.origin(start, end)), view.span)

    @contextmanager
    def _noting(self, view: ViewDeclaration) -> Iterator[None]:
        """Note an error that is raised for a view's query and for which no pass has found the place."""
        try:
            yield
        except RecursionError:
            self._compilation.note(view.span, _nests_too_deep(view))
        except (AnalysisFailed, *SPARK_ERRORS) as error:
            if is_stack_overflow(error.__cause__ if isinstance(error, AnalysisFailed) else error):
                self._compilation.note(view.span, _nests_too_deep(view))
                return
            cause = str(error) if isinstance(error, AnalysisFailed) else spark_complaint(error)
            self._compilation.note(view.span, f"Spark cannot plan the query of {display(view.name)}: {cause}")


def _nests_too_deep(view: ViewDeclaration) -> str:
    return f"The query of {display(view.name)} nests too deep: move parts of it into views of their own"
