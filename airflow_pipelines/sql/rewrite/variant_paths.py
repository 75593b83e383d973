"""The rewrite of paths into VARIANTs, ``v:a.b[0]``, to calls of VARIANT_GET."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit
from airflow_pipelines.sql.syntax.variant_paths import variant_paths
from airflow_pipelines.sql.values.json_path import path_literal, path_step


def variant_path_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits that replace each value with a path by a VARIANT, which is NULL if the path leads to nothing.

    A cast around it becomes a cast of a VARIANT, which fails the step if the value does not fit.

    :param walker: the query
    :raises CallRefused: if an element is not given by a constant
    """
    end_before = -1
    for path in variant_paths(walker.tokens):
        first, is_behind_path, end_before = walker.operand(path.colon - 1), path.colon == end_before, path.end
        # A colon behind another path is found again once that path has become a call.
        if first is None or is_behind_path:
            continue
        if path.end < len(walker.tokens) and walker.tokens[path.end].token_type is TokenType.L_BRACKET:
            close = walker.closing(path.end)
            behind = walker.end(path.end if close is None else close)
            message = "A path behind a colon has names and constants: write (v:a)[i] for a computed element, which counts from 1"
            raise CallRefused(walker.start(path.end), behind, message)
        value = walker.piece(walker.start(first), walker.end(path.colon - 1))
        steps = "".join(_step(walker, at) for at in path.steps)
        yield Edit(walker.start(first), walker.end(path.end - 1), f"VARIANT_GET({value}, {path_literal(steps)}, 'variant')")


def _step(walker: TokenWalker, at: int) -> str:
    token = walker.tokens[at]
    return f"[{token.text}]" if token.token_type is TokenType.NUMBER else path_step(token.text)
