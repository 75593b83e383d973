"""Secrets that are written out in the connectors of a program's text: the search for them and their replacement.

This works on any text, even if it does not compile, because such a text is stored and shown as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

_PROPERTY: Final = re.compile(r"('connectors'\s*=\s*')((?:[^']|'')*)('|\Z)", re.IGNORECASE)
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_VALUE: Final = rf"(?P<between>\s*:\s*)(?P<value>{_STRING}|-?\d[\d.eE+-]*)"
_MEMBER: Final = re.compile(rf"(?P<key>{_STRING}){_VALUE}")
_STRING_OR_MEMBER: Final = re.compile(rf"(?P<key>{_STRING})(?:{_VALUE})?")
_TEXT: Final = re.compile(_STRING)
_SECRET_NAME: Final = re.compile(
    r"passw(or)?d|passphrase|pwd|secret|token|credential|authorization|jaas\.config|sas[._-]?(key|url)"
    r"|(api|access|account|private|encryption)[._-]?key|key[._-]?(pem|password)|\.key$|client[._-]?key$",
    re.IGNORECASE,
)
_SECRET_NUMBER: Final = re.compile(r"(password|passwd|passphrase|pwd|secret|pin)$", re.IGNORECASE)
_URL_PASSWORD: Final = re.compile(r"(?<=://)([^\s/?#@:]*):([^\s/?#@]+)@")
_HAS_REFERENCE: Final = re.compile(r"\$\{[^}]*\}")

Keep = Callable[[str], str]
"""A function that stores a secret and returns the text to write in its place."""


def is_secret_name(name: str) -> bool:
    """Return True if texts under a name are secrets, such as under ``password`` or ``secret_key``."""
    return _SECRET_NAME.search(name) is not None


def has_password(text: str) -> bool:
    """Return True if a URL in a text has a password (``scheme://user:password@host``) that is not a reference to a secret."""
    return any(not _HAS_REFERENCE.search(url[2]) for url in _URL_PASSWORD.finditer(text))


def replace_secrets(program: str, keep: Keep) -> str:
    """Replace each secret in the connectors of a program's text by what ``keep`` returns for it.

    Values under names such as ``password`` or ``secret_key`` are secrets, and passwords within URLs.

    :param program: the program's text
    :param keep: the function that stores a secret and returns its reference
    """

    def replace_property(written: re.Match[str]) -> str:
        return written[1] + _of_json(written[2].replace("''", "'"), keep).replace("'", "''") + written[3]

    return _PROPERTY.sub(replace_property, program)


def replace_passwords(text: str, keep: Keep) -> str:
    """Replace each password in a URL (``scheme://user:password@host``) of a text by what ``keep`` returns for it.

    :param text: any text
    :param keep: the function that stores a secret and returns its reference
    """
    return _URL_PASSWORD.sub(lambda url: url[0] if _HAS_REFERENCE.search(url[2]) else f"{url[1]}:{keep(url[2])}@", text)


def _of_json(text: str, keep: Keep) -> str:
    def member(written: re.Match[str]) -> str:
        if written["value"] is None:
            return written[0]
        key, value = _read(written["key"]), _read(written["value"])
        if isinstance(value, str):
            if not value or _HAS_REFERENCE.search(value) or not is_secret_name(str(key)):
                return written[0]
        elif not _SECRET_NUMBER.search(str(key)):
            return written[0]
        kept = keep(value if isinstance(value, str) else written["value"])
        return written["key"] + written["between"] + json.dumps(kept)

    def url(written: re.Match[str]) -> str:
        value = _read(written[0])
        changed = replace_passwords(value, keep) if isinstance(value, str) else value
        return written[0] if changed == value else json.dumps(changed, ensure_ascii=False)

    # In JSON each string is matched whole: the text between the end of one and the start of the next may look like a member.
    # In other text the start of a string is unknown, so that each quote may begin one.
    members = _STRING_OR_MEMBER if _is_json(text) else _MEMBER
    return _TEXT.sub(url, members.sub(member, text))


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def _read(written: str) -> object:
    """Return the value of a JSON string or number; return text that is no JSON without its quotes."""
    try:
        return json.loads(written, strict=False)
    except ValueError:
        return written.strip('"')
