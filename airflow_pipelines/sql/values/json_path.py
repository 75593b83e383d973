"""Paths into VARIANTs, as VARIANT_GET takes them."""

from __future__ import annotations


def path_step(key: str) -> str:
    """Return the step of a path to the field of an object.

    :param key: the field's name
    """
    return f"['{key}']" if '"' in key else f'["{key}"]'


def path_literal(steps: str) -> str:
    """Return the literal of a path.

    :param steps: its steps, concatenated
    """
    return "'" + f"${steps}".replace("\\", "\\\\").replace("'", "\\'") + "'"
