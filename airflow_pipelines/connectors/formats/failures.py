"""What a format needs besides the data, such as a registry of schemas, and cannot have."""

from __future__ import annotations


class FormatFailure(Exception):
    """A format cannot go on: what, where, and what to do about it."""


class TransientFormatFailure(FormatFailure):
    """What failed may succeed later: a server is not there."""
