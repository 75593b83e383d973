"""The comparison of a pipeline with the wanted one, as far as its descriptor allows: secrets in it are references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from airflow_pipelines.sql.program.connector_secrets import replace_secrets

_KEPT: Final = re.compile(r"\$\{secret:pipelines/[^}]*\}")
"""The pattern of the references that replace secrets sent in clear."""


class Likeness(IntEnum):
    """The degree of difference between a stored value and a given one; greater values mean greater differences."""

    SAME = 0
    SAME_BUT_FOR_SECRETS = 1
    """Equal except for secrets, which only the service can compare. Sending it the same value again changes nothing."""
    SAME_BUT_FOR_COMMENTS = 2
    """Equal except for comments and white space, so the program is the same."""
    DIFFERENT = 3


def compare_programs(stored: str, given: str) -> Likeness:
    """Compare the texts of programs.

    :param stored: the program as the service stores it, with references in place of secrets
    :param given: the wanted program
    """
    if stored == given:
        return Likeness.SAME
    alike = _KEPT.sub("", stored) == _KEPT.sub("", replace_secrets(given, lambda _: ""))
    if alike:
        return Likeness.SAME_BUT_FOR_SECRETS
    # A text that has secrets is compared by the service alone: one of them may be another.
    return Likeness.SAME_BUT_FOR_COMMENTS if not _KEPT.search(stored) and _says_the_same(stored, given) else Likeness.DIFFERENT


def _says_the_same(one: str, other: str) -> bool:
    """Return True if two programs consist of the same tokens and differ only in comments and white space."""
    # Imported here: most programs are compared without being read, and this loads the SQL library.
    from airflow_pipelines.program.messages import ProgramErrors
    from airflow_pipelines.sql.syntax.tokens import fold_text

    try:
        words, others = ([(token.token_type, token.text) for token in fold_text(text).tokens] for text in (one, other))
    except ProgramErrors:
        return False
    return words == others


def compare_stream_files(descriptor: Mapping[str, Any], files: Mapping[str, str]) -> Likeness:
    """Compare the files of stream programs, including their order: another first file is another program.

    :param descriptor: the pipeline as the service sends it, with all fields
    :param files: the wanted texts by path
    """
    stored: Mapping[str, str] = descriptor.get("stream_files") or {}
    return Likeness.SAME if list(stored.items()) == list(files.items()) else Likeness.DIFFERENT


def compare_configs(stored: Any, given: Any) -> Likeness:
    """Compare configurations.

    :param stored: JSON as the service stores it, with all defaults filled in
    :param given: the wanted JSON, which may leave fields out
    """
    if isinstance(given, Mapping) and isinstance(stored, Mapping):
        degrees = [
            compare_configs(stored[name], value) if name in stored else Likeness.DIFFERENT
            for name, value in given.items()
            if value is not None
        ]
        return max(degrees, default=Likeness.SAME)
    if stored == given:
        return Likeness.SAME
    hidden = isinstance(stored, str) and isinstance(given, str) and _KEPT.search(stored)
    return Likeness.SAME_BUT_FOR_SECRETS if hidden else Likeness.DIFFERENT


def merged_configs(stored: Any, given: Any) -> Any:
    """Return a stored configuration with the given values in it.

    :param stored: JSON as the service stores it
    :param given: the JSON that replaces parts of it
    """
    if isinstance(given, Mapping) and isinstance(stored, Mapping):
        return {**stored, **{name: merged_configs(stored.get(name), value) for name, value in given.items()}}
    return given
