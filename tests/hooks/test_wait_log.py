from __future__ import annotations

import json
from typing import Any

from airflow_pipelines.hooks.wait_log import MOST_LINES, WaitLog

SUBJECT = "waiting for status RUNNING of pipeline 'p'"


class Lines:
    """What a log was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def log(self, _level: int, message: str, *arguments: Any) -> None:
        self.texts.append(message % arguments)


def told(story: WaitLog) -> list[str]:
    log = story.log
    assert isinstance(log, Lines)
    return [text.removeprefix(f"{SUBJECT}: ") for text in log.texts]


def test_what_does_not_change_is_told_once() -> None:
    story = WaitLog(Lines())
    for second in range(10_000):
        story.progress(SUBJECT, "INITIALIZING", float(second))
    assert told(story) == ["INITIALIZING"]


def test_each_stage_is_told_at_once() -> None:
    story = WaitLog(Lines())
    stages = ["PROVISIONING", "INITIALIZING", "BOOTSTRAPPING, 1 of 9 views", "REPLAYING"]
    for second, stage in enumerate(stages):
        story.progress(SUBJECT, stage, 100 + second / 10)
    assert told(story) == stages


def test_figures_are_told_ever_more_seldom_and_leave_lines_for_stages() -> None:
    story = WaitLog(Lines())
    for second in range(3600):
        story.progress(SUBJECT, f"BOOTSTRAPPING, {second} of 3600 rows", float(second))
    assert told(story) == [f"BOOTSTRAPPING, {second} of 3600 rows" for second in (0, 10, 70)]
    story.progress(SUBJECT, "REPLAYING", 3600.0)
    assert told(story)[-1] == "REPLAYING"


def test_there_are_never_more_than_a_few_lines() -> None:
    story = WaitLog(Lines())
    for second in range(1000):
        if second % 7 == 0:
            story.outage(SUBJECT, "the service is away")
        else:
            story.progress(SUBJECT, "PAUSED" if second % 2 else "RUNNING", 1000.0 * second)
    assert len(told(story)) <= MOST_LINES + 2


def test_an_outage_is_told_when_it_begins_and_when_it_ends() -> None:
    story = WaitLog(Lines())
    story.progress(SUBJECT, "RUNNING", 0.0)
    for _ in range(10):
        story.outage(SUBJECT, "the service is away: refused")
    story.progress(SUBJECT, "RUNNING", 1.0)
    assert told(story) == ["RUNNING", "the service is away: refused", "the service answers again"]


def test_another_process_goes_on_where_the_last_one_was() -> None:
    lines = Lines()
    story = WaitLog(lines)
    story.progress(SUBJECT, "RUNNING", 0.0)
    again = WaitLog.from_json(lines, json.loads(json.dumps(story.to_json())))
    again.progress(SUBJECT, "RUNNING", 1000.0)
    assert told(again) == ["RUNNING"]
