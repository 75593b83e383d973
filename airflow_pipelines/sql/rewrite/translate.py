"""Translates one text to Spark SQL where no analyzer is needed: functions, casts, built-ins, predicates, forms of SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from airflow_pipelines.sql.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.builtins import builtin_edits
from airflow_pipelines.sql.rewrite.casts import cast_edits
from airflow_pipelines.sql.rewrite.functions import function_edits
from airflow_pipelines.sql.rewrite.predicates import predicate_edits
from airflow_pipelines.sql.rewrite.refused import CallRefused, refuse_unknown
from airflow_pipelines.sql.rewrite.select_forms import select_edits
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit, Edited

MAX_LENGTH = 1_000_000
"""How long a text may become, in characters: functions that call functions can grow beyond all bounds."""
_MAX_GROWTH = 8
"""How many times its own length a text that is long as written may become."""


def translate(query: Edited, definitions: Definitions) -> Edited:
    """A query or expression as Spark is to read it, which knows where its pieces came from.

    :param query: Spark SQL with folded names
    :param definitions: the program's own types and functions
    :raises CallRefused: when a function of the program is called in a wrong way; its place is that of the query as first written
    """
    try:
        refuse_unknown(TokenWalker(query.text), definitions.functions)
    except CallRefused as refused:
        raise CallRefused(*query.origin(refused.start, refused.end), refused.message) from refused
    return spell_for_spark(inline_functions(query, definitions) if definitions.functions else query, definitions)


def spell_for_spark(edited: Edited, definitions: Definitions) -> Edited:
    """A text without the casts, functions and constructs that Spark writes in another way."""
    cast = _rounds(edited, lambda walker: cast_edits(walker, definitions.types))
    return _rounds(_rounds(cast, lambda walker: chain(builtin_edits(walker), predicate_edits(walker))), select_edits)


def inline_functions(edited: Edited, definitions: Definitions) -> Edited:
    """A text without calls of the program's SQL functions. Raises CallRefused."""
    return _rounds(edited, lambda walker: function_edits(walker, definitions.functions))


def _rounds(edited: Edited, rule: Callable[[TokenWalker], Iterable[Edit]]) -> Edited:
    limit = max(MAX_LENGTH, _MAX_GROWTH * len(edited.text))
    while True:
        try:
            edits = list(rule(TokenWalker(edited.text)))
        except CallRefused as refused:
            raise CallRefused(*edited.origin(refused.start, refused.end), refused.message) from refused
        if not edits:
            return edited
        edited = edited.edit(_innermost(edits))
        if len(edited.text) > limit:
            raise CallRefused(0, 0, f"With its functions written out this text has more than {limit} characters")


def _innermost(edits: Iterable[Edit]) -> Iterator[Edit]:
    """The edits that hold no other one."""
    nearest: int | None = None
    for edit in sorted(edits, key=lambda edit: (-edit.start, edit.end)):
        if nearest is None or edit.end < nearest:
            yield edit
            nearest = edit.end
