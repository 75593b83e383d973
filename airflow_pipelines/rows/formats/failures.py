"""Failures of a format's dependencies besides the data, such as a registry of schemas."""

from __future__ import annotations


class FormatFailure(Exception):
    """The error for a format that cannot continue, with the problem, its place and its remedy."""


class TransientFormatFailure(FormatFailure):
    """A failure that may pass: a server that cannot be reached."""
