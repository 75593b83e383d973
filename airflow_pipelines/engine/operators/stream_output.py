"""A relation that a stream program produces: rows are added, or with a primary key the last one of each key stays."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema
from airflow_pipelines.engine.normalise import Normaliser
from airflow_pipelines.engine.operators.matching_rows import matching_rows
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.spark.schemas import column_from_spark_json
from airflow_pipelines.engine.state import Kept
from airflow_pipelines.engine.stream_nodes import StreamOutput
from airflow_pipelines.program.relations import Table
from airflow_pipelines.program.streams import STREAM_PROGRAM
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from airflow_pipelines.rows.schema import RelationSchema

KIND = "__kind"
"""The column with the number of each row's kind of change."""
_ADDS = pa.array([0, 2], pa.int8())
"""The kinds of rows that are inserted: a new row, and the new version of an updated row."""


class StreamOutputOperator(Operator[StreamOutput]):
    """The operator that reads the rows of a stream program for one relation."""

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate the step, see :class:`Operator`."""
        schema = weighted(stage_schema(self.stage))
        rows = self._rows(context)
        if rows is None:
            return Outcome(Batch.empty(schema), consolidated=True)
        contents = kept.contents or self._empty_contents()
        normaliser = Normaliser(
            self._table, self._schema, lambda wanted, names: matching_rows(contents, wanted, list(names), context)
        )
        delta = normaliser.delta([TableChanges(self.relation, _changes(rows))])
        for rejected in normaliser.rejected:
            raise ValueError(
                f"{rejected.count} rows cannot be in {self.relation!r}: {rejected.reason}, for example {rejected.sample[0]}"
            )
        return Outcome(context.spill_if_large(Batch.in_memory(schema, delta)))

    def _rows(self, context: Context) -> pa.Table | None:
        tables = []
        for batch in context.relations[STREAM_PROGRAM].delta:
            messages = batch.to_arrow()
            mine = messages.filter(pc.equal(messages["output"], self.node.output.uid))
            numbered = zip(mine["sequence"].to_pylist(), mine["data"].to_pylist(), strict=True)
            tables += [pa.ipc.open_stream(data).read_all() for _, data in sorted(numbered, key=lambda message: message[0])]
        return pa.concat_tables(tables) if tables else None

    @property
    def _table(self) -> Table:
        """The relation as a table, so that the rules for tables make a delta of its rows."""
        return Table(self.relation, self._schema.columns, primary_key=self.node.primary_key, append_only=self.node.append_only)

    @property
    def _schema(self) -> RelationSchema:
        fields: StructType = stage_schema(self.stage)
        columns = tuple(column_from_spark_json(field.jsonValue()) for field in fields.fields)
        return RelationSchema(self.relation, columns, self.node.primary_key or ())


def _changes(rows: pa.Table) -> pa.Table:
    adds = pc.is_in(rows[KIND].cast(pa.int8()), value_set=_ADDS)
    operations = pc.if_else(adds, int(Op.INSERT), int(Op.DELETE)).cast(pa.int8())
    return rows.drop_columns([KIND]).append_column(OP, operations)
