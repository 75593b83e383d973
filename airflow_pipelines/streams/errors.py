"""Errors of stream programs."""

from __future__ import annotations


class StreamProgramError(Exception):
    """A program asks for what a stream cannot do. The message says where, and what to do instead."""


class NoKeyError(StreamProgramError):
    """State or timers were asked for where there is no key."""


class FunctionTimeLimitError(StreamProgramError):
    """One call of a user's function gave results for longer than the limit."""
