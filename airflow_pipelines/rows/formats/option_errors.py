"""Errors of options that a declaration gives."""

from __future__ import annotations


class UnknownOptionError(ValueError):
    """A connector declaration names a transport, format or option that does not exist; the message lists the known ones.

    :param word: what was written wrongly, so that whoever has the declaration's text can point at it; None: all of it
    """

    def __init__(self, message: str, word: str | None = None) -> None:
        super().__init__(message)
        self.word = word


class InvalidOptionError(UnknownOptionError):
    """A known option is missing, has a value that is not allowed, or asks for something that is not supported here."""
