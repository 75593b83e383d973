"""Failures of what a format needs besides the data, such as a registry of schemas."""

from __future__ import annotations


class FormatFailure(Exception):
    """A format cannot go on: what, where, and what to do about it."""


class TransientFormatFailure(FormatFailure):
    """A failure that may pass: a server is not there."""
