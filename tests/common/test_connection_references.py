"""References to Airflow connections: what they stand for, and what is said when they stand for nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_pipelines.common import connection_references
from airflow_pipelines.common.connection_references import (
    AirflowConnections,
    AirflowRefusal,
    ConnectionField,
    ConnectionProblem,
    ask_airflow,
)
from airflow_pipelines.common.references import References, ReferenceWithoutValueError
from airflow_pipelines.common.secret_files import SecretFiles

pytestmark = pytest.mark.core

SHOP = {
    "conn_type": "postgres",
    "host": "db.example",
    "login": "me",
    "password": "hunter2-secret",
    "port": 5432,
    "schema": "orders",
    "extra": {"sslmode": "require", "nested": {"a": 1}, "with.dots": "yes"},
}


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An Airflow that has the connection ``shop``."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(SHOP))


class Asked:
    """Answers as Airflow would, and counts how often."""

    def __init__(self) -> None:
        self.conn_ids: list[str] = []

    def __call__(self, conn_id: str) -> dict[str, str]:
        self.conn_ids.append(conn_id)
        if conn_id != "shop":
            raise AirflowRefusal("AirflowNotFoundException")
        return {"login": "me", "password": "hunter2-secret", "extra.sslmode": "require"}


def references(*allowed: str, secrets: SecretFiles | None = None, asked: Asked | None = None) -> References:
    return References(connections=AirflowConnections(allowed or ("*",), secrets, asked or Asked()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shop.login", ConnectionField("shop", "login")),
        ("my.shop.password", ConnectionField("my.shop", "password")),
        ("shop.extra.sslmode", ConnectionField("shop", "extra", "sslmode")),
        ("shop.extra.with.dots", ConnectionField("shop", "extra", "with.dots")),
    ],
)
def test_forms(text: str, expected: ConnectionField) -> None:
    assert ConnectionField.of(text) == expected


@pytest.mark.parametrize("text", ["", "shop", "shop.", ".login", "shop.user", "shop.extra", "shop.extra."])
def test_what_is_no_reference_to_a_field(text: str) -> None:
    with pytest.raises(ConnectionProblem, match="with one of the fields host, port, login"):
        ConnectionField.of(text)


@pytest.mark.rest
@pytest.mark.processes
@pytest.mark.usefixtures("airflow")
def test_what_airflow_has() -> None:
    given = References(connections=AirflowConnections(["*"]))
    config = {
        "uri": "postgresql://${conn:shop.login}:${conn:shop.password}@${conn:shop.host}:${conn:shop.port}/${conn:shop.schema}"
    }
    assert given.resolve(config) == {"uri": "postgresql://me:hunter2-secret@db.example:5432/orders"}
    assert given.resolve("${conn:shop.extra.sslmode} ${conn:shop.extra.with.dots}") == "require yes"
    assert "hunter2-secret" in given.resolve("${conn:shop.uri}")
    assert given.redact("cannot log in with hunter2-secret") == "cannot log in with ${conn:shop.password}"
    assert "hunter2-secret" not in repr(given)
    with pytest.raises(ReferenceWithoutValueError, match=r"Airflow gives no connection .nowhere. here .AirflowNotFoundException\)"):
        given.resolve("${conn:nowhere.login}")
    with pytest.raises(ReferenceWithoutValueError, match=r"the connection .shop. has no extra\.nested"):
        given.resolve("${conn:shop.extra.nested}")


@pytest.mark.usefixtures("airflow")
def test_airflow_is_asked_once_for_what_is_opened_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    given = references(asked=asked)
    assert given.resolve("${conn:shop.login}:${conn:shop.password}") == "me:hunter2-secret"
    assert asked.conn_ids == ["shop"]
    monkeypatch.setattr(connection_references, "FRESH_S", -1.0)
    assert given.resolve("${conn:shop.login}") == "me"
    assert asked.conn_ids == ["shop", "shop"], "a password that was changed is seen"


@pytest.mark.processes
def test_an_airflow_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_references, "_ASKING", "import time; print('hunter2'); time.sleep(60)")
    monkeypatch.setattr(connection_references, "ASK_S", 0.5)
    with pytest.raises(AirflowRefusal, match=r"it has not answered for 0\.5 s"):
        ask_airflow("shop")
    monkeypatch.setattr(connection_references, "_ASKING", "import sys; print('hunter2'); sys.exit(3)")
    monkeypatch.setattr(connection_references, "ASK_S", 30.0)
    with pytest.raises(AirflowRefusal, match="exit code 3") as error:
        ask_airflow("shop")
    assert "hunter2" not in str(error.value)


@pytest.mark.usefixtures("airflow")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shop.extra.nothing", "the connection 'shop' has no extra.nothing"),
        ("nowhere.login", "Airflow gives no connection 'nowhere' here .AirflowNotFoundException.; make it, or have the task"),
        ("shop.logon", "write ..conn:CONN_ID.FIELD."),
    ],
)
def test_what_airflow_does_not_have(name: str, message: str) -> None:
    with pytest.raises(ReferenceWithoutValueError, match=message) as error:
        references().resolve(f"${{conn:{name}}}")
    assert "hunter2" not in str(error.value)


@pytest.mark.usefixtures("airflow")
def test_connections_that_are_not_allowed_are_not_read() -> None:
    assert references("other", "sh*").resolve("${conn:shop.login}") == "me"
    with pytest.raises(
        ReferenceWithoutValueError, match="may not read the connection 'shop' here; the setting connector_connections"
    ):
        references("other").resolve("${conn:shop.login}")


def test_what_a_task_has_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_references, "_is_configured", lambda: False)
    secrets = SecretFiles(tmp_path / "secrets")
    secrets.write("airflow/shop/password", "handed-over")
    secrets.write("airflow/shop/sslmode", "verify-full")
    given = references(secrets=secrets)
    assert given.resolve("${conn:shop.password}") == "handed-over"
    assert given.resolve("${conn:shop.extra.sslmode}") == "verify-full"
    with pytest.raises(ReferenceWithoutValueError, match=r"Airflow is not installed and configured.*secret_conn_ids=\['shop'\]"):
        given.resolve("${conn:shop.login}")
    with pytest.raises(ReferenceWithoutValueError, match="may not read the connection 'shop'"):
        references("other", secrets=secrets).resolve("${conn:shop.password}")


def test_an_airflow_that_was_never_set_up_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AIRFLOW_HOME", "AIRFLOW_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in connection_references.os.environ if name.startswith(("AIRFLOW__", "AIRFLOW_CONN_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ReferenceWithoutValueError, match="Airflow is not installed and configured where the pipeline runs"):
        references().resolve("${conn:shop.login}")
    assert list(tmp_path.iterdir()) == []


def test_where_nobody_knows_connections() -> None:
    with pytest.raises(ReferenceWithoutValueError, match="nobody knows Airflow connections here"):
        References().resolve("${conn:shop.login}")
