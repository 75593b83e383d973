"""JSON documents that carry a checksum over their own bytes, so that a flipped bit is an error and not another value."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

DIGEST_BYTES = 20
_SEALED = re.compile(rb'\{"checksum":"([0-9a-f]{40})","content":(.*)\}\n', re.DOTALL)


class BrokenSealError(ValueError):
    """The error of bytes that are not those that were sealed."""


def digest(content: bytes) -> str:
    """Return the hash that names files and seals documents.

    :param content: any bytes
    :returns: 40 hexadecimal digits
    """
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def seal(document: Mapping[str, Any]) -> bytes:
    """Return a document with its checksum, as one line of JSON.

    :param document: a document of JSON values
    :returns: the bytes for :func:`unseal`
    """
    content = json.dumps(document, separators=(",", ":")).encode()
    return b'{"checksum":"%s","content":%s}\n' % (digest(content).encode(), content)


def unseal(sealed: bytes) -> dict[str, Any]:
    """Return the document that was sealed.

    :param sealed: the bytes from :func:`seal`
    :returns: the document
    :raises BrokenSealError: if a byte has changed
    """
    parsed = _SEALED.fullmatch(sealed)
    if parsed is None:
        raise BrokenSealError("it has no checksum")
    if digest(parsed[2]).encode() != parsed[1]:
        raise BrokenSealError("its checksum is not that of its content")
    document: dict[str, Any] = json.loads(parsed[2])
    return document
