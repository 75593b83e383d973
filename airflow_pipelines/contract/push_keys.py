"""The key of a push: what makes a request of rows that is repeated one that adds them once."""

from __future__ import annotations

from typing import Final

IDEMPOTENCY_KEY_HEADER: Final = "idempotency-key"
MAX_KEY: Final = 512
"""Characters of a key."""


def check_push_key(key: str) -> str:
    """Check a key that somebody has chosen.

    :param key: the key
    :returns: the same
    :raises ValueError: it is empty, too long, or cannot be a header
    """
    if not key or len(key) > MAX_KEY or not key.isascii() or not key.isprintable():
        raise ValueError(f"an idempotency key has 1 to {MAX_KEY} printable ASCII characters, and this is {key[:80]!r}")
    return key
