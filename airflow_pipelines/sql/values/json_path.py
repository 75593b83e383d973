"""Paths into VARIANTs, as VARIANT_GET takes them."""

from __future__ import annotations


def path_step(key: str) -> str:
    """The step of a path to the field of an object.

    :param key: the field's name
    """
    return f"['{key}']" if '"' in key else f'["{key}"]'


def path_literal(steps: str) -> str:
    """The literal of a path.

    :param steps: its steps, one behind the other
    """
    return "'" + f"${steps}".replace("\\", "\\\\").replace("'", "\\'") + "'"
