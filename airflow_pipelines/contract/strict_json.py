"""JSON that can be kept and answered again: UTF-8, no half characters, finite numbers, bounded depth."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final

MAX_DEPTH: Final = 100
"""How many objects and lists may stand within each other."""

_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class StrictJsonError(ValueError):
    """A text is no JSON, or none that can be kept; the message says where."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands in the whole; ``outer`` is None for the whole itself."""

    outer: _Place | None
    key: str | int

    def __str__(self) -> str:
        keys: list[str] = []
        place: _Place | None = self
        while place is not None and place.outer is not None:
            keys.append(f"[{place.key}]" if isinstance(place.key, int) else f".{_escaped(place.key)}")
            place = place.outer
        return "".join(reversed(keys)).removeprefix(".") or "the top level"


def parse_json(raw: bytes) -> Any:
    """Read a JSON text.

    :raises StrictJsonError: when it is none, or holds what cannot be kept: half of a surrogate pair, NUL, a number that is not
        finite or has too many digits, more than :data:`MAX_DEPTH` levels
    """
    try:
        text = raw.decode("utf-8-sig")
        value = json.loads(text)
    except UnicodeDecodeError as error:
        raise StrictJsonError(f"byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8") from error
    except RecursionError as error:
        raise StrictJsonError(f"{_too_deep(text)} is more than {MAX_DEPTH} levels deep") from error
    except ValueError as error:
        raise StrictJsonError(str(error).partition(";")[0]) from error
    check(value)
    return value


def keepable(value: Any, depth: int = 0) -> Any:
    """A copy of a value that an older release kept, in which what cannot be answered is replaced.

    Half characters become U+FFFD; numbers that are not finite, and what is too deep, become null.
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
    """Make sure that a JSON value that was read can be kept.

    :param whole: the value
    :raises StrictJsonError: when it holds what :func:`parse_json` refuses
    """
    # With a list of what is left to do instead of recursion: the depth is what is looked at.
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
        found = text.find("\0")
        if found >= 0:
            raise StrictJsonError(f"{place} has U+0000 as character {found + 1}, which cannot be kept")
        return
    match = _SURROGATE.search(text) or re.search("\0", text)
    if match is not None:
        what = "U+0000, which cannot be kept" if match[0] == "\0" else f"{_escaped(match[0])}, half of a surrogate pair"
        raise StrictJsonError(f"{place} has as character {match.start() + 1} {what}")


def _too_deep(text: str) -> str:
    """The line and column of the bracket that opens one level too many."""
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


def _escaped(text: str) -> str:
    """Text without half characters, which no answer could hold."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
