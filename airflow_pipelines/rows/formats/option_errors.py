"""Errors in the options of a declaration."""

from __future__ import annotations


class UnknownOptionError(ValueError):
    """The error for a declared transport, format or option that does not exist; the message lists the known ones.

    :param word: the wrong word, so that a caller with the declaration's text can point at it; None: all of it
    """

    def __init__(self, message: str, word: str | None = None) -> None:
        super().__init__(message)
        self.word = word


class InvalidOptionError(UnknownOptionError):
    """The error for a known option that is missing, has an invalid value, or is not supported here."""
