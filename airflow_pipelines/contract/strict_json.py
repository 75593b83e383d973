"""JSON that can be stored and answered again: UTF-8, no lone surrogates, finite numbers, bounded depth."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final

MAX_DEPTH: Final = 100
"""The maximum nesting depth of objects and lists."""

_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class StrictJsonError(ValueError):
    """The error of a text that is not JSON, or not JSON that can be stored. The message gives the place."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a value in the whole; ``outer`` is None for the whole itself."""

    outer: _Place | None
    key: str | int

    def __str__(self) -> str:
        keys: list[str] = []
        place: _Place | None = self
        while place is not None and place.outer is not None:
            keys.append(f"[{place.key}]" if isinstance(place.key, int) else f".{_escape(place.key)}")
            place = place.outer
        return "".join(reversed(keys)).removeprefix(".") or "the top level"


def parse_json(raw: bytes) -> Any:
    """Parse a JSON text.

    :raises StrictJsonError: when it is not JSON, or cannot be stored: it has a lone surrogate, NUL, a number that is not finite or
        has too many digits, or more than :data:`MAX_DEPTH` levels
    """
    try:
        text = raw.decode("utf-8-sig")
        value = json.loads(text)
    except UnicodeDecodeError as error:
        raise StrictJsonError(f"byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8") from error
    except RecursionError as error:
        raise StrictJsonError(f"{_locate_too_deep(text)} is more than {MAX_DEPTH} levels deep") from error
    except ValueError as error:
        raise StrictJsonError(str(error).partition(";")[0]) from error
    check(value)
    return value


def keepable(value: Any, depth: int = 0) -> Any:
    """Return a copy of a value that an older release stored, with the parts replaced that cannot be answered.

    Lone surrogates become U+FFFD; numbers that are not finite, and values that are nested too deeply, become null.
    """
    if depth > 2 * MAX_DEPTH:
        return None
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {keepable(key): keepable(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [keepable(each, depth + 1) for each in value]
    return value


def check(whole: Any) -> None:
    """Check that a parsed JSON value can be stored.

    :param whole: the value
    :raises StrictJsonError: when it has something that :func:`parse_json` rejects
    """
    # A work list instead of recursion, since the depth is what is checked.
    left: list[tuple[Any, _Place, int]] = [(whole, _Place(None, ""), 0)]
    while left:
        value, place, depth = left.pop()
        if depth > MAX_DEPTH:
            raise StrictJsonError(f"{str(place)[:200]} is more than {MAX_DEPTH} levels deep")
        if isinstance(value, str):
            _check_text(value, place)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise StrictJsonError(f"{place} is no finite number")
        elif isinstance(value, dict):
            for key, each in value.items():
                inner = _Place(place, key)
                _check_text(key, inner)
                left.append((each, inner, depth + 1))
        elif isinstance(value, list):
            left.extend((each, _Place(place, index), depth + 1) for index, each in enumerate(value))


def _check_text(text: str, place: _Place) -> None:
    if text.isascii():
        at = text.find("\0")
        if at >= 0:
            raise StrictJsonError(f"{place} has U+0000 as character {at + 1}, which cannot be kept")
        return
    match = _SURROGATE.search(text) or re.search("\0", text)
    if match is not None:
        what = "U+0000, which cannot be kept" if match[0] == "\0" else f"{_escape(match[0])}, half of a surrogate pair"
        raise StrictJsonError(f"{place} has as character {match.start() + 1} {what}")


def _locate_too_deep(text: str) -> str:
    """Return the line and column of the bracket that opens one level too many."""
    depth = 0
    for match in _TOKENS.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                line = text.count("\n", 0, match.start()) + 1
                return f"line {line} column {match.start() - text.rfind(chr(10), 0, match.start())}"
        elif match[0] in "]}":
            depth -= 1
    return "the text"


def _escape(text: str) -> str:
    """Return the text with lone surrogates escaped, since no answer could hold them."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
