"""The paths behind colons, ``v:a.b[0]['c']``, which lead into VARIANTs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_BASE_ENDS: Final = frozenset({TokenType.IDENTIFIER, TokenType.R_BRACKET, TokenType.R_PAREN, TokenType.VAR})


@dataclass(frozen=True, slots=True)
class VariantPath:
    """The tokens of a path: those of its fields and elements, and the first one behind it.

    :param colon: the colon
    :param steps: the tokens with the names and numbers
    :param end: the token behind the path
    """

    colon: int
    steps: tuple[int, ...]
    end: int


def variant_paths(tokens: Sequence[Token]) -> Iterator[VariantPath]:
    """Yield the paths of a text, in its order.

    Colons with another meaning are skipped: those in the fields of ``STRUCT<a: INT>`` and in ``MAP {k: v}``.

    :param tokens: the tokens
    """
    in_types = in_braces = 0
    for at, token in enumerate(tokens):
        kind = token.token_type
        before = tokens[at - 1] if at else None
        in_braces += (kind is TokenType.L_BRACE) - (kind is TokenType.R_BRACE)
        if kind is TokenType.LT and (in_types or (before is not None and before.text.lower() == "struct")):
            in_types += 1
        elif in_types and token.text.strip(">") == "":
            in_types = max(0, in_types - len(token.text))
        elif kind is TokenType.COLON and not in_types and not in_braces and _ends_base(before):
            path = _path(tokens, at)
            if path is not None:
                yield path


def _ends_base(token: Token | None) -> bool:
    return token is not None and (token.token_type in _BASE_ENDS or _is_name(token))


def _is_name(token: Token) -> bool:
    return token.token_type is TokenType.IDENTIFIER or (
        token.token_type is not TokenType.STRING and token.text.replace("_", "a").isalnum() and not token.text[0].isdigit()
    )


def _path(tokens: Sequence[Token], colon: int) -> VariantPath | None:
    """Return the path behind a colon, or None if none begins there."""
    steps: list[int] = []
    at = colon + 1
    while at < len(tokens):
        kind = tokens[at].token_type
        if kind is TokenType.L_BRACKET:
            inside = tokens[at + 1 : at + 3]
            is_constant = len(inside) == 2 and inside[0].token_type in {TokenType.NUMBER, TokenType.STRING}
            if not is_constant or inside[1].token_type is not TokenType.R_BRACKET:
                break
            steps.append(at + 1)
            at += 3
        elif not steps and _is_name(tokens[at]):
            steps.append(at)
            at += 1
        elif steps and kind is TokenType.DOT and at + 1 < len(tokens) and _is_name(tokens[at + 1]):
            steps.append(at + 1)
            at += 2
        else:
            break
    return VariantPath(colon, tuple(steps), at) if steps else None
