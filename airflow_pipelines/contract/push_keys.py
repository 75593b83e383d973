"""The idempotency key of a push: a request of rows that is repeated with the same key adds them only once."""

from __future__ import annotations

from typing import Final

IDEMPOTENCY_KEY_HEADER: Final = "idempotency-key"
MAX_KEY: Final = 512
"""The maximum number of characters of a key."""


def check_push_key(key: str) -> str:
    """Check a key that a client has chosen.

    :param key: the key
    :returns: the same key
    :raises ValueError: when it is empty, too long, or cannot be a header
    """
    if not key or len(key) > MAX_KEY or not key.isascii() or not key.isprintable():
        raise ValueError(f"an idempotency key has 1 to {MAX_KEY} printable ASCII characters, and this is {key[:80]!r}")
    return key
