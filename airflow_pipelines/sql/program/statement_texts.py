"""The statements that declare a program's relations, as they were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_pipelines.program.relations import Table
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.sql.syntax.tokens import fold_text, split_statements


def statement_texts(text: str, given: Sequence[Table] = ()) -> Mapping[str, str]:
    """Return the statement that declares each relation of a program.

    :param text: the SQL text of a program that compiled
    :param given: the relations that are made outside of the text and that its views read
    :returns: the statements by canonical name
    :raises ProgramErrors: if the text cannot be read
    """
    program = parse_program(text, given=given)
    folded = fold_text(text)
    spans = {table.name: table.span for table in program.tables.values()}
    spans |= {view.name: view.span for view in program.views.values()}
    starts = {folded.source.offset(span.start_line, span.start_column): name for name, span in spans.items() if span is not None}
    texts = {}
    for tokens in split_statements(folded.tokens):
        first, last = tokens[0].start, tokens[-1].end + 1
        texts.update({name: text[first:last] for start, name in starts.items() if first <= start < last})
    return texts
