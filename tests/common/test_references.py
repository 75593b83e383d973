"""References: what they stand for, and that it is not told."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.common.references import NO_REFERENCES, References, ReferenceWithoutValueError, secrets_named
from airflow_pipelines.common.secret_files import SecretFiles


@pytest.fixture
def references(tmp_path: Path) -> References:
    secrets = SecretFiles(tmp_path)
    secrets.write("store/key", "hush-8d3a")
    secrets.write("longer", "hush-8d3a-and-more")
    secrets.write("short", "eu")
    return References({"REGION": "eu-west", "SAME": "from the host"}, secrets)


def test_values_take_the_places_of_references(references: References) -> None:
    mine = references.with_env({"KEY": "${secret:store/key}", "SAME": "mine", "DOLLAR": "a ${secret:store/key}"})
    config = {"a": ["${env:KEY}", "x${secret:short}y"], "b": {"c": "${env:REGION}/${env:SAME}"}, "d": 7, "e": "${env:DOLLAR}"}
    assert mine.resolve(config) == {"a": ["hush-8d3a", "xeuy"], "b": {"c": "eu-west/mine"}, "d": 7, "e": "a ${secret:store/key}"}
    assert secrets_named(config) == {"short"}
    for text, said in (("${env:NONE}", "env:NONE"), ("${secret:none}", "no secret 'none'"), ("${vault:x}", "of kind 'vault'")):
        with pytest.raises(ReferenceWithoutValueError, match=said):
            mine.resolve(text)


def test_what_was_asked_for_is_not_told(references: References) -> None:
    mine = references.with_env({"KEY": "${secret:store/key}"})
    mine.resolve(["${secret:longer}", "${secret:short}", "${env:REGION}"])
    told = mine.redact("cannot open ftp://me:hush-8d3a-and-more@eu-west/hush-8d3a in eu")
    assert told == "cannot open ftp://me:${secret:longer}@${env:REGION}/${secret:store/key} in eu"
    assert "hush" not in repr(mine)
    # Of other pipelines nothing is known.
    assert references.with_env({}).redact("hush-8d3a") == "hush-8d3a"
    assert NO_REFERENCES.redact("text") == "text"
