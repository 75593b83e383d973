"""When brokers are asked whether a topic was made anew."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_pipelines.systems.kafka import topic_ids
from airflow_pipelines.systems.kafka.topic_ids import TopicIds


class _MadeAnewError(Exception):
    """The failure of a topic."""


class _Watched(TopicIds):
    """Ids that a test says in place of a broker, with the moments at which it was asked, by a clock of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__({"bootstrap.servers": "localhost:1"}, _MadeAnewError)
        self.now = 0.0
        self.said: str | None = "first"
        self.questions: list[float] = []
        monkeypatch.setattr(topic_ids, "time", SimpleNamespace(monotonic=lambda: self.now))

    def _ask(self, names: list[str], patience_s: float) -> Mapping[str, str]:
        self.questions.append(self.now)
        if self.said is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return dict.fromkeys(names, self.said)

    def came_at(self, now: float) -> None:
        self.now = now
        self.came(True)


@pytest.fixture
def ids(monkeypatch: pytest.MonkeyPatch) -> _Watched:
    made = _Watched(monkeypatch)
    made.begin({"t": None})
    return made


@pytest.mark.parametrize("pause", [0.21, 0.4, 3.0])
def test_a_topic_that_is_made_anew_in_a_short_pause_is_noticed(ids: _Watched, pause: float) -> None:
    ids.came_at(1.0)
    ids.said = "second"
    with pytest.raises(_MadeAnewError):
        ids.came_at(1.0 + pause)


def test_records_without_pauses_are_asked_about_now_and_then(ids: _Watched) -> None:
    for tenth in range(1, 301):
        ids.came_at(tenth / 10)
    assert 3 <= len(ids.questions) <= 5


def test_brokers_that_do_not_answer_are_asked_less_and_less(ids: _Watched) -> None:
    ids.said = None
    for tenth in range(1, 601):
        ids.came_at(tenth / 10)
    assert len(ids.questions) < 15
    assert ids.questions[-1] - ids.questions[-2] == pytest.approx(10, abs=0.2)
    ids.said = "second"
    with pytest.raises(_MadeAnewError):
        ids.came_at(80.0)
