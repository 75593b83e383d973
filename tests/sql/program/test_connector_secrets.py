"""Secrets are found in the connectors of any text, and nothing else of the text changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_pipelines.sql.program.connector_secrets import _SECRET_NUMBER, replace_passwords, replace_secrets


def taken_out(program: str) -> tuple[str, list[str]]:
    kept: list[str] = []

    def keep(value: str) -> str:
        kept.append(value)
        return f"<{len(kept)}>"

    return replace_secrets(program, keep), kept


def table(config: str) -> str:
    text = f'[{{"name": "c", "transport": {{"name": "x", "config": {config}}}}}]'.replace("'", "''")
    return f"CREATE TABLE t (password VARCHAR) WITH ('materialized' = 'true', 'connectors' = '{text}');"


@pytest.mark.parametrize(
    "name",
    [
        "password", "sasl.password", "secret_key", "aws_secret_access_key", "aws_access_key_id", "token", "bearerToken", "api-key",
        "sasl.jaas.config", "account_key", "ssl.key.pem", "ssl.key.password", "credential", "Authorization", "passphrase",
        "private_key", "ssl_client_key",
    ],
)  # fmt: skip
def test_values_under_names_of_secrets(name: str) -> None:
    text, kept = taken_out(table(json.dumps({"topic": "a", name: "hunter2", "n": 1})))
    assert kept == ["hunter2"]
    assert text == table(json.dumps({"topic": "a", name: "<1>", "n": 1}))


@pytest.mark.parametrize(
    "config",
    [
        {"topic": "secret", "path": "/tokens/password.csv", "max_tokens": 5, "fields": {"password": {"values": ["a", "b"]}}},
        {"password": "${secret:a/b}", "uri": "postgres://me:${env:PASSWORD}@h/db"},
        {
            "ssl_client_key_location": "/etc/ssl/client.key",
            "password": "",
            "uri": "s3://bucket/a@b:c",
            "other": "http://host:80/?x=a:b@c",
            "mail": "a:b@c",
        },
    ],
)
def test_what_is_no_secret_stays(config: dict[str, object]) -> None:
    program = table(json.dumps(config))
    assert taken_out(program) == (program, [])


def test_secrets_are_not_looked_for_elsewhere() -> None:
    program = """CREATE VIEW v AS SELECT '{"password": "x"}' AS j, 'http://u:p@h' AS u FROM t; -- "password": "x" """
    assert taken_out(program) == (program, [])


def test_numbers_escapes_and_quotes() -> None:
    text, kept = taken_out(table('{"password" :12345, "secret": "a\\"b\\u0041", "token": "it\'s"}'))
    assert kept == ["12345", 'a"bA', "it's"]
    assert text == table('{"password" :"<1>", "secret": "<2>", "token": "<3>"}')


def test_passwords_in_urls() -> None:
    text, kept = taken_out(table('{"uri": "postgres://me:p%40ss:w@h:5432/db?x=1", "brokers": ["amqp://a:b@h", "h"]}'))
    assert kept == ["p%40ss:w", "b"]
    assert text == table('{"uri": "postgres://me:<1>@h:5432/db?x=1", "brokers": ["amqp://a:<2>@h", "h"]}')
    assert replace_passwords("s3://key:word@host/b", lambda _: "X") == "s3://key:X@host/b"


@pytest.mark.parametrize(
    "program",
    [
        'CREATE TABEL t (i INT) WITH (\'connectors\' = \'[{"password": "hunter2"}',
        "create table t (i int) with ('CONNECTORS'\n=\n'not json \"password\": \"hunter2\" at all')",
        "create table a with ('connectors'='[]'), ('connectors'='[{\"password\":\"hunter2\"}]'); select 'it''s'",
    ],
)
def test_texts_that_do_not_compile(program: str) -> None:
    text, kept = taken_out(program)
    assert kept == ["hunter2"]
    assert text == program.replace("hunter2", "<1>")


@pytest.mark.rest
def test_long_texts_take_no_long_time() -> None:
    for program in (
        "'connectors' = '" + '"password": "' * 20_000,
        table('{"a": "' + "x:" * 100_000 + '"}'),
        "'connectors'=" * 20_000,
    ):
        taken_out(program)


@given(st.text())
def test_any_text_without_connectors_stays(text: str) -> None:
    if "connectors" not in text.lower():
        assert taken_out(text) == (text, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


def with_references(value: object) -> object:
    """A value as it comes back: a number that is a secret, such as a PIN, is text, since its reference is one."""
    if isinstance(value, list):
        return [with_references(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: str(each) if type(each) is int and _SECRET_NUMBER.search(key) else with_references(each) for key, each in value.items()
    }


@example(value={":": None}, secret="hunter2", ascii_only=True)
@example(value={"PASSWORD": 0, "pin": [1], "pins": -2}, secret="0", ascii_only=False)
@given(JSON, st.text(min_size=1).filter(lambda text: "${" not in text and "://" not in text), st.booleans())
def test_the_json_around_a_secret_stays(value: object, secret: str, ascii_only: bool) -> None:
    config = json.dumps({"before": value, "password": secret, "after": 1}, ensure_ascii=ascii_only)
    _, kept_without = taken_out(table(json.dumps({"before": value, "after": 1}, ensure_ascii=ascii_only)))
    kept: list[str] = []

    def keep(given: str) -> str:
        kept.append(given)
        return given

    text = replace_secrets(table(config), keep)
    assert sorted(kept) == sorted([*kept_without, secret])
    found = text.split("'connectors' = '", 1)[1].removesuffix("');").replace("''", "'")
    assert json.loads(found)[0]["transport"]["config"] == {
        "before": with_references(value),
        "password": secret,
        "after": 1,
    }
