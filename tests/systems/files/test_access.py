"""Why files of other machines cannot be read."""

from __future__ import annotations

import pytest

from airflow_pipelines.systems.files.access import AccessProblem, UnusablePathError, file_system_of, without_names


class NoCredentialsError(Exception):
    """As libraries of object stores name it."""


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (NoCredentialsError("Unable to locate credentials"), AccessProblem.NO_KEYS),
        (PermissionError("Forbidden"), AccessProblem.REFUSED),
        (OSError("When reading key 'a': AWS Error ACCESS_DENIED during HeadObject operation"), AccessProblem.REFUSED),
        (OSError("When reading key 'ACCESS_DENIED/a': AWS Error NETWORK_CONNECTION"), AccessProblem.UNREACHABLE),
        (TimeoutError(), AccessProblem.UNREACHABLE),
    ],
)
def test_each_error_has_a_kind(error: Exception, problem: AccessProblem) -> None:
    assert AccessProblem.of(error) is problem


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("cannot read s3://lake/credentials/a.parquet: timed out", "cannot read  timed out"),
        ("key 'user credentials' in bucket \"permissions\": AWS Error", " in : AWS Error"),
        ("<Code>AccessDenied</Code><Key>signature</Key>", "<Code>AccessDenied</Code></Key>"),
        ("/data/403/t.parquet and data/404 are damaged", " and  are damaged"),
        ("status 403, no/yes", "status 403, "),
    ],
)
def test_names_of_users_are_no_words_of_errors(message: str, words: str) -> None:
    assert without_names(message) == words


def test_a_path_without_a_file_system_is_named_with_the_reason() -> None:
    with pytest.raises(UnusablePathError, match="Protocol not known: nowhere") as unknown:
        file_system_of("nowhere://b/a")
    assert not unknown.value.lacks_package
    system, path = file_system_of("/tmp/a")
    assert (system.protocol, path) == (("file", "local"), "/tmp/a")
