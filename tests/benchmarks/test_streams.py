"""The benchmark of stream programs, as far as it needs no other system: its programs give the right results, its figures follow."""

from __future__ import annotations

from collections import defaultdict

import pytest

from benchmarks.machine import Machine
from benchmarks.measure import Bound, Measurement
from benchmarks.results_file import Results
from benchmarks.streams import growth
from benchmarks.streams.job import Job
from benchmarks.streams.latency_job import KEYS, _through_state
from benchmarks.streams.packages import Ours
from benchmarks.streams.profile import REST, shares
from benchmarks.streams.speed import _rates, measurements
from benchmarks.streams.workloads import WINDOW_MS, WORKLOADS
from benchmarks.tables import filled_in
from tools.flink import Flink, FlinkUnavailableError, run, tool

MACHINE = Machine("2026-01-01T00:00:00Z", "a processor", 2, 4.0, "Linux", "3.11", "4.2.0")
ELEMENTS = 25_000


def _keyed(keys):
    return sorted(number // keys + 1 for number in range(ELEMENTS))


def _windows(keys):
    sums = defaultdict(int)
    for number in range(ELEMENTS):
        sums[(number // WINDOW_MS, number % keys)] += number
    return sorted(sums.values())


def _sliding(keys):
    slide = WINDOW_MS // 4
    sums = defaultdict(int)
    for number in range(ELEMENTS):
        for back in range(4):
            sums[(number // slide - back, number % keys)] += number
    return sorted(sums.values())


def _sessions(keys):
    sums = defaultdict(int)
    for number in range(ELEMENTS):
        if number // keys % 3 != 2:
            sums[(number // (3 * keys), number % keys)] += number
    return sorted(sums.values())


EXPECTED = {
    "map": lambda keys: sorted((number * 2 + 1) ^ 255 for number in range(ELEMENTS) if (number * 2 + 1) % 3),
    "keyed_1000": _keyed,
    "keyed_20000": _keyed,
    "window": _windows,
    "keyed_rows": _keyed,
    "keyed_dicts": _keyed,
    "sliding": _sliding,
    "sessions": _sessions,
    "timers": lambda keys: [number + WINDOW_MS for number in range(ELEMENTS)],
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_computes_what_it_says(name):
    assert Job("ours", name).results(ELEMENTS) == EXPECTED[name](WORKLOADS[name].keys)
    assert Job("ours", name).seconds(1) > 0


def test_the_paced_program_gives_the_time_of_each_element():
    package = Ours()
    env = package.environment()
    found = list(_through_state(package.api, package.paced(env, KEYS, 0.0)).execute_and_collect())
    assert len(found) == KEYS
    assert all(0 < nanoseconds < 60e9 for nanoseconds in found)


def test_each_key_of_the_growing_state_is_touched_evenly():
    keys = 100_000
    touched = [number * growth.SPREAD % keys for number in range(keys, keys + growth.TOUCHED)]
    assert len(set(touched)) == growth.TOUCHED
    by_tenth = [sum(key * 10 // keys == tenth for key in touched) for tenth in range(10)]
    assert all(900 <= count <= 1_100 for count in by_tenth)


def test_a_step_over_a_small_state_is_measured(monkeypatch):
    monkeypatch.setattr(growth, "TOUCHED", 500)
    found = growth.figures(1_000)
    assert found["step_and_checkpoint_s"] >= found["step_s"] > 0
    assert found["rss_mib"] > 10


def test_the_growth_is_that_from_the_smallest_to_the_largest_size():
    row = {"step_s": 1.0, "rss_mib": 5.0, "load_s": 3.0}
    sizes = {size: {**row, "step_and_checkpoint_s": float(at)} for at, size in enumerate(growth.SIZES, 2)}
    found = {item.name: item.value for item in growth.measurements(sizes)}
    assert found["streams_state_growth"] == 2.0
    assert (found["streams.growth.1e5.step_and_checkpoint_s"], found["streams.growth.1e7.rss_mib"]) == (2.0, 5.0)
    del sizes[growth.SIZES[-1]]
    assert "streams_state_growth" not in {item.name for item in growth.measurements(sizes)}


def test_ratios_follow_from_rates():
    rates = {("ours", "keyed_1000"): 400.0, ("flink_thread", "keyed_1000"): 100.0, ("ours", "keyed_20000"): 90.0}
    names = {item.name for item in measurements(rates)}
    assert names == {f"streams.{workload}.{system}.elements_per_s" for system, workload in rates} | {"streams_keyed_rows_per_s"}
    rates |= {("flink_thread", "keyed_20000"): 90.0, ("ours", "map"): 30.0, ("flink_thread", "map"): 10.0}
    found = {item.name: item for item in measurements(rates)}
    assert found["streams_keyed_vs_flink_thread"].value == pytest.approx(2.0)
    assert found["streams_map_vs_flink_thread"].value == pytest.approx(3.0)
    assert found["streams_map_vs_flink_thread"].bound is Bound.AT_LEAST
    assert found["streams_keyed_rows_per_s"].value == 90.0
    assert "streams_window_vs_flink_thread" not in found


class _System:
    def __init__(self, name, results):
        self.name = name
        self._results = results

    def results(self, workload):
        return self._results

    def rate(self, workload, repeats):
        if self.name == "broken":
            raise FlinkUnavailableError("it does not start")
        return 10.0 * repeats


def test_systems_that_give_different_results_are_not_compared():
    workload, failures = WORKLOADS["keyed_1000"], []
    assert _rates([workload], [_System("ours", [1]), _System("other", [2])], 3, failures) == {}
    assert failures == ["keyed_1000: ['other'] and ours give different results"]


def test_what_fails_takes_nothing_else_with_it():
    failures = []
    systems = [_System("ours", [1]), _System("quix", None), _System("broken", [1])]
    found = _rates([WORKLOADS["keyed_1000"], WORKLOADS["map"]], systems, 2, failures)
    assert found == {("ours", "keyed_1000"): 20.0, ("quix", "keyed_1000"): 20.0, ("ours", "map"): 20.0}
    assert failures == ["keyed_1000: it does not start", "map: it does not start"]


def test_the_time_of_what_is_built_in_belongs_to_its_callers():
    state, other = ("/x/streams/state/views.py", 1, "value"), ("/x/elsewhere.py", 1, "f")
    found = shares([(state, 1.0, {other: 1.0}), (other, 2.0, {}), (("~", 0, "<len>"), 1.0, {state: 0.75, other: 0.25})])
    assert found == {REST: pytest.approx(0.5625), "state": pytest.approx(0.4375)}
    assert list(found) == [REST, "state"]


def test_the_page_shows_stream_programs():
    results = Results()
    figures = {
        "streams.keyed_1000.ours.elements_per_s": 1_000_000.0,
        "streams.keyed_1000.ours_deployed.elements_per_s": 300_000.0,
        "streams.keyed_1000.flink_thread.elements_per_s": 20_000.0,
        "streams.keyed_1000.quix.elements_per_s": 25_000.0,
        "streams.map.ours.elements_per_s": 2_000_000.0,
        "streams.latency.ours.ms_median": 0.15,
        "streams.latency.ours.ms_p95": 0.3,
        "streams.latency.ours_deployed_shown.ms_median": 12.0,
        "streams.latency.ours_deployed_shown.ms_p95": 25.0,
        "streams.growth.1e5.step_s": 0.1,
        "streams.growth.1e5.step_and_checkpoint_s": 0.2,
        "streams.growth.1e5.rss_mib": 90.0,
        "streams.profile.state": 0.25,
        "streams.profile.source": 0.75,
    }
    results.add([Measurement(name, value, "x") for name, value in figures.items()], MACHINE)
    markers = ("streams", "stream_latency", "stream_growth", "stream_profile")
    page = filled_in("".join(f"<!-- begin {marker} -->\n<!-- end {marker} -->\n" for marker in markers), results)
    assert "| keyed_1000 | 1,000,000 | 300,000 | 20,000 |  | 25,000 | 50.0 |" in page
    assert "| map | 2,000,000 |  |  |  |  |  |" in page
    assert "| ours, as a script | 0.15 | 0.3 |" in page
    assert "| ours, deployed, until a reader of a view has it | 12 | 25 |" in page
    assert "| 1e5 | 0.100 | 0.200 | 90 |" in page
    assert page.index("| source | 75% |") < page.index("| state | 25% |")


def test_flink_that_is_installed_is_not_installed_again(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.flink.tool", lambda name: pytest.fail(f"{name} was asked for"))
    flink = Flink(tmp_path)
    (tmp_path / "installed-2.3.0").touch()
    assert Flink.set_up(tmp_path) == flink
    packages = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    environment = flink.environment("4g")
    assert str(packages) in environment["PYTHONPATH"]
    assert environment["JVM_ARGS"] == "-Xmx4g"


def test_a_tool_that_is_missing_is_named():
    with pytest.raises(FlinkUnavailableError, match="no-such-tool is needed"):
        tool("no-such-tool")


@pytest.mark.core
@pytest.mark.processes
def test_a_program_that_fails_shows_what_it_said():
    with pytest.raises(FlinkUnavailableError, match="No such file or directory"):
        run(["ls", "/no/such/folder"], {"PATH": "/bin:/usr/bin", "LC_ALL": "C"})
