"""The translation of one text to Spark SQL without an analyzer: functions, casts, built-ins, predicates, forms of SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.builtins import builtin_edits
from airflow_pipelines.sql.rewrite.casts import cast_edits, constructor_edits
from airflow_pipelines.sql.rewrite.functions import function_edits
from airflow_pipelines.sql.rewrite.predicates import predicate_edits
from airflow_pipelines.sql.rewrite.refused import CallRefused, refuse_unknown
from airflow_pipelines.sql.rewrite.select_forms import select_edits
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.rewrite.variant_paths import variant_path_edits
from airflow_pipelines.sql.syntax.edits import Edit, Edited

EditsOf = Callable[[TokenWalker, Definitions], Iterable[Edit]]
"""A function that returns the edits of a pass in a text; empty if nothing is left to rewrite."""


def _variant_paths(walker: TokenWalker, _definitions: Definitions) -> Iterable[Edit]:
    return variant_path_edits(walker)


def _casts(walker: TokenWalker, definitions: Definitions) -> Iterable[Edit]:
    own = {name: kind for name, kind in definitions.types.items() if name not in definitions.functions}
    return chain(cast_edits(walker, definitions.types), constructor_edits(walker, own) if own else ())


def _builtins_and_predicates(walker: TokenWalker, _definitions: Definitions) -> Iterable[Edit]:
    return chain(builtin_edits(walker), predicate_edits(walker))


def _select_forms(walker: TokenWalker, _definitions: Definitions) -> Iterable[Edit]:
    return select_edits(walker)


PASSES: tuple[EditsOf, ...] = (_variant_paths, _casts, _builtins_and_predicates, _select_forms)
"""The passes in their order. Each is repeated until it has no edits, because its output may need it again."""
MAX_LENGTH = 1_000_000
"""The limit of a text's length in characters: functions that call functions can grow without bounds."""
_MAX_GROWTH = 8
"""The factor by which a text that is long as written may grow."""


def translate(query: Edited, definitions: Definitions) -> Edited:
    """Translate a query or expression to Spark SQL. The result maps its pieces to the text as written.

    :param query: Spark SQL with folded names
    :param definitions: the program's own types and functions
    :raises CallRefused: if a call is wrong or its function does not exist; its position is that in the query as first written
    """
    try:
        refuse_unknown(TokenWalker(query.text), definitions.functions)
    except CallRefused as refused:
        raise CallRefused(*query.origin(refused.start, refused.end), refused.message) from refused
    return spell_for_spark(inline_functions(query, definitions) if definitions.functions else query, definitions)


def spell_for_spark(edited: Edited, definitions: Definitions) -> Edited:
    """Rewrite casts, built-in functions, predicates and forms of SELECT, in the order of :data:`PASSES`.

    :param edited: the text
    :param definitions: the program's own types
    :raises CallRefused: if the text becomes too long
    """
    for edits_of in PASSES:
        edited = _to_fixed_point(edited, edits_of, definitions)
    return edited


def inline_functions(edited: Edited, definitions: Definitions) -> Edited:
    """Replace the calls of the program's functions.

    :param edited: the text
    :param definitions: the program's own functions
    :raises CallRefused: if a function is called in a wrong way
    """
    return _to_fixed_point(edited, _function_calls, definitions)


def _function_calls(walker: TokenWalker, definitions: Definitions) -> Iterable[Edit]:
    return function_edits(walker, definitions.functions)


def _to_fixed_point(edited: Edited, edits_of: EditsOf, definitions: Definitions) -> Edited:
    limit = max(MAX_LENGTH, _MAX_GROWTH * len(edited.text))
    while True:
        try:
            edits = list(edits_of(TokenWalker(edited.text), definitions))
        except CallRefused as refused:
            raise CallRefused(*edited.origin(refused.start, refused.end), refused.message) from refused
        if not edits:
            return edited
        edited = edited.edit(_find_innermost(edits))
        if len(edited.text) > limit:
            raise CallRefused(0, 0, f"With its functions written out this text has more than {limit} characters")


def _find_innermost(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Yield the edits that contain no other one."""
    nearest: int | None = None
    for edit in sorted(edits, key=lambda edit: (-edit.start, edit.end)):
        if nearest is None or edit.end < nearest:
            yield edit
            nearest = edit.end
