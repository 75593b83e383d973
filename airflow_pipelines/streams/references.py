"""References in texts of a program, such as passwords: ``${env:NAME}`` and ``${secret:NAME}``. They stand for values that the
program itself does not contain.

A process of a pipeline receives the values of the references that the program names from its host. A program that runs by itself
finds them in its own environment and in the folder of secrets of its user.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from airflow_pipelines.common.references import REFERENCE, References, ReferenceWithoutValueError
from airflow_pipelines.common.secret_files import SecretFiles
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.streams.errors import StreamProgramError

_GIVEN: dict[str, str] | None = None


def give_references(values: Mapping[str, str]) -> None:
    """Set the values of references in this process.

    :param values: the values by reference, as ``${secret:NAME}``
    """
    global _GIVEN
    _GIVEN = dict(values)


def named_references(*texts: str | None) -> Iterator[str]:
    """Yield the references that texts contain.

    :param texts: the texts; None for one that does not exist
    :returns: references such as ``${secret:NAME}``
    """
    for text in texts:
        yield from REFERENCE.findall(text or "")


def without_references(text: str) -> str:
    """Return a text with its references replaced by their values. The result must never be stored or shown.

    :param text: the text
    :returns: the text with the values
    :raises StreamProgramError: if a reference has no value
    """
    return REFERENCE.sub(lambda match: _value(match[0]), text)


def _value(reference: str) -> str:
    if _GIVEN is not None:
        if reference not in _GIVEN:
            raise StreamProgramError(
                f"{reference} has no value here: the source or sink that uses it has to name it in references()."
            )
        return _GIVEN[reference]
    try:
        return References(os.environ, SecretFiles(Settings.load().secrets)).value(reference)
    except ReferenceWithoutValueError as error:
        name = reference[2:-1].removeprefix("env:")
        is_variable = reference.startswith("${env:")
        raise StreamProgramError(
            f"{reference} has no value: set the environment variable {name}" if is_variable else str(error)
        ) from None
