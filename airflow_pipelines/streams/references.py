"""References in texts of a program, such as passwords: ``${env:NAME}`` and ``${secret:NAME}``, which stand for values that the
program itself does not have.

A process of a pipeline is given the values of those that the program names, by its host. A program that runs by itself finds them
in its own environment and in the folder of secrets of its user.
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
    """Say what references stand for in this process.

    :param values: the values by references, as ``${secret:NAME}``
    """
    global _GIVEN
    _GIVEN = dict(values)


def named_references(*texts: str | None) -> Iterator[str]:
    """The references that texts name.

    :param texts: the texts; None for one that is not there
    :returns: such as ``${secret:NAME}``
    """
    for text in texts:
        yield from REFERENCE.findall(text or "")


def without_references(text: str) -> str:
    """A text with values in the places of its references. What comes out is never to be kept or shown.

    :param text: the text
    :returns: what it stands for
    :raises StreamProgramError: when a reference has no value
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
