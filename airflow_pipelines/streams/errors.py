"""Errors of stream programs."""

from __future__ import annotations


class ExplainedError(Exception):
    """An error whose message says what the program did wrong, so that lines of this package in its traceback add nothing."""


class StreamProgramError(ExplainedError):
    """A program asks for what a stream cannot do. The message says where, and what to do instead."""


class NoKeyError(StreamProgramError):
    """State or timers were asked for where there is no key."""


class FunctionTimeLimitError(StreamProgramError):
    """One call of a user's function gave results for longer than the limit."""
