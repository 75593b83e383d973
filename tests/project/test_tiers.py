"""The fast tests start nothing, core tests are few and quick, and shards leave nothing out."""

from __future__ import annotations

import re
import socket
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.durations import Durations
from tests.tiers import COLLECTED, CollectedTest, Guard, StartedInFastTest, Tier, chosen_tiers, parse_shard, share_files

ROOT = Path(__file__).parents[2]
MOST_WORKER_MINUTES = 20.0
LONGEST_CORE_TEST_S = 5.0
_WORKERS = 2


@pytest.mark.parametrize(
    ("event", "arguments", "says"),
    [
        ("subprocess.Popen", ("/usr/bin/java", ["java"], None, None), "starts /usr/bin/java"),
        ("os.posix_spawn", (b"java", [], {}), "starts java"),
        ("os.fork", (), "forks"),
        ("socket.bind", (None, ("127.0.0.1", 0)), "listens at"),
    ],
)
def test_a_fast_test_that_starts_something_fails(event: str, arguments: tuple[object, ...], says: str) -> None:
    guard = Guard()
    guard.audit(event, arguments)
    guard.active = True
    guard.audit("open", ("/a/file", "r", 0))
    with pytest.raises(StartedInFastTest, match=says):
        guard.audit(event, arguments)


def test_the_guard_is_there(request: pytest.FixtureRequest) -> None:
    if chosen_tiers(request.config) != {Tier.FAST}:
        assert dict(request.node.user_properties)["tier"] == Tier.FAST
        return
    with pytest.raises(StartedInFastTest):
        subprocess.run(["true"], check=True)
    with socket.socket() as one, pytest.raises(StartedInFastTest):
        one.bind(("127.0.0.1", 0))


def test_core_tests_take_twelve_minutes(request: pytest.FixtureRequest) -> None:
    """In worker minutes: two workers share them, and start what tests share twice."""
    durations = Durations.load()
    core = [test for test in request.config.stash[COLLECTED] if test.tier is Tier.CORE]
    fixtures = {name for test in core for name in test.fixtures} & set(durations.fixtures)
    shared = _WORKERS * sum(durations.fixtures[name] for name in fixtures)
    seconds = sum(durations.fast.values()) + sum(durations.of_test(test.node_id) for test in core) + shared
    by_folder: Counter[str] = Counter()
    for test in core:
        by_folder[str(Path(test.file).parent)] += round(durations.of_test(test.node_id))
    assert seconds / 60 <= MOST_WORKER_MINUTES, f"core tests by folder, in seconds: {by_folder.most_common(20)}"


def test_a_core_test_that_takes_long_says_why(request: pytest.FixtureRequest) -> None:
    durations = Durations.load()
    slow = {
        test.node_id: durations.of_test(test.node_id)
        for test in request.config.stash[COLLECTED]
        if test.tier is Tier.CORE and not test.slow_because and durations.of_test(test.node_id) > LONGEST_CORE_TEST_S
    }
    assert slow == {}, "make them cheaper, leave them to make test-all, or say why: @pytest.mark.core(slow_because='...')"


def test_ids_that_markers_name_exist(request: pytest.FixtureRequest) -> None:
    named: dict[str, set[str]] = defaultdict(set)
    cases: dict[str, set[str | None]] = defaultdict(set)
    for test in request.config.stash[COLLECTED]:
        name = test.node_id.partition("[")[0]
        named[name] |= test.named_cases
        cases[name].add(test.case)
    assert {name: ids - cases[name] for name, ids in named.items() if ids - cases[name]} == {}


def test_pages_say_how_many_tests_there_are(request: pytest.FixtureRequest) -> None:
    """Within a twentieth: nobody counts on more, and nobody shall change pages for each test."""
    tests = request.config.stash[COLLECTED]
    if not any(test.file == "tests/cli/test_commands.py" for test in tests):
        pytest.skip("not the whole suite was collected")
    counted = Counter(test.tier for test in tests)
    expected = [counted[Tier.FAST], counted[Tier.FAST] + counted[Tier.CORE], len(tests)]
    page = (ROOT / "docs" / "testing.md").read_text()
    said = [int(number.replace(",", "")) for number in re.findall(r"^\| `make test[\w-]*` \| ([\d,]+) \|", page, re.MULTILINE)]
    assert said == [pytest.approx(count, rel=0.05) for count in expected]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0"])
def test_a_shard_is_a_part_of_a_whole(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 argparse says which option has what value
        parse_shard(text)


def test_shards_leave_no_file_out_and_take_equally_long() -> None:
    files = {f"test_{number}.py" for number in range(40)}
    seconds = {f"test_{number}.py": float(number) for number in range(38)}
    shards = share_files(files, seconds, 3)
    assert sorted(file for shard in shards for file in shard) == sorted(files)
    sums = [sum(seconds.get(file, 10.0) for file in shard) for shard in shards]
    assert max(sums) - min(sums) <= 2
    assert share_files(files, seconds, 3) == shards


def test_measured_files_replace_what_was_known_of_them() -> None:
    known = Durations({"a": 1.0, "b": 1.0}, {"a": {"gone": 1.0}, "b": {"stays": 2.0}}, {"spark": 8.0})
    known.replace_files(Durations({}, {"a": {"new": 3.0}}, {"kafka": 5.0}))
    assert known == Durations({"b": 1.0}, {"a": {"new": 3.0}, "b": {"stays": 2.0}}, {"spark": 8.0, "kafka": 5.0})
    assert known.sum_by_file() == {"a": 3.0, "b": 3.0}


def test_a_case_of_a_test_has_the_tier_of_its_id() -> None:
    one = CollectedTest("tests/a.py::test_x[b-c[0]]", Tier.CORE, frozenset({"b-c[0]"}), None, ())
    assert (one.file, one.case) == ("tests/a.py", "b-c[0]")
