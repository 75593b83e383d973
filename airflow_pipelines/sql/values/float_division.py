"""Division of floating-point numbers as in IEEE 754: by zero it gives an infinity or NaN, where Spark in ANSI mode fails."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.sql.syntax.dialect import tokenise
from airflow_pipelines.sql.syntax.tokens import LITERALS

_BEGIN = "COALESCE(TRY_DIVIDE("
_OPENING, _CLOSING = frozenset({"(", "[", "{"}), frozenset({")", "]", "}"})


def quotient(left: str, right: str) -> str:
    """Return Spark SQL for ``left / right``, one of which is a FLOAT or DOUBLE; it is NULL only if one of both is.

    :param left: Spark SQL of the dividend
    :param right: Spark SQL of the divisor
    """
    return f"{_BEGIN}{left}, {right}), ({left}) * (({right}) + DOUBLE('Infinity')))"


def with_plain_quotients(text: str) -> str:
    """Return a text with ``left / right`` in place of each result of :func:`quotient`.

    :param text: Spark SQL as the planner prints it
    """
    at = len(text)
    # From the end, so that an inner quotient comes before the one around it.
    while (at := text.rfind(_BEGIN, 0, at)) >= 0:
        sides = _arguments(text, at + len(_BEGIN))
        whole = quotient(*sides) if len(sides) == 2 else ""
        if whole and text.startswith(whole, at):
            text = f"{text[:at]}{' / '.join(sides)}{text[at + len(whole) :]}"
    return text


def _arguments(text: str, start: int) -> list[str]:
    """Return the arguments of the call whose first one starts at an offset."""
    arguments, first, depth = [], start, 0
    for token in tokenise(text[start:]):
        word, place = token.text, start + token.start
        if token.token_type in LITERALS or token.token_type is TokenType.IDENTIFIER:
            continue
        if depth == 0 and word in {",", ")"}:
            arguments.append(text[first:place].strip())
            first = place + 1
            if word == ")":
                break
        depth += (word in _OPENING) - (word in _CLOSING)
    return arguments
