"""Division of floating-point numbers as IEEE 754 has it: by zero it gives an infinity or NaN, where Spark in ANSI mode fails."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.sql.syntax.dialect import tokenise
from airflow_pipelines.sql.syntax.tokens import LITERALS

_BEGIN = "COALESCE(TRY_DIVIDE("
_OPENING, _CLOSING = frozenset({"(", "[", "{"}), frozenset({")", "]", "}"})


def quotient(left: str, right: str) -> str:
    """Spark SQL for ``left / right`` of which one is a FLOAT or DOUBLE; NULL only where one of both is.

    :param left: Spark SQL of the dividend
    :param right: Spark SQL of the divisor
    """
    return f"{_BEGIN}{left}, {right}), ({left}) * (({right}) + DOUBLE('Infinity')))"


def with_plain_quotients(text: str) -> str:
    """A text with ``left / right`` in place of what :func:`quotient` gives.

    :param text: Spark SQL as the planner prints it
    """
    at = len(text)
    # From the end, so that what stands within another one comes first.
    while (at := text.rfind(_BEGIN, 0, at)) >= 0:
        sides = _arguments(text, at + len(_BEGIN))
        whole = quotient(*sides) if len(sides) == 2 else ""
        if whole and text.startswith(whole, at):
            text = f"{text[:at]}{' / '.join(sides)}{text[at + len(whole) :]}"
    return text


def _arguments(text: str, start: int) -> list[str]:
    """The arguments of the call whose first one starts at an offset."""
    found, first, depth = [], start, 0
    for token in tokenise(text[start:]):
        word, place = token.text, start + token.start
        if token.token_type in LITERALS or token.token_type is TokenType.IDENTIFIER:
            continue
        if depth == 0 and word in {",", ")"}:
            found.append(text[first:place].strip())
            first = place + 1
            if word == ")":
                break
        depth += (word in _OPENING) - (word in _CLOSING)
    return found
