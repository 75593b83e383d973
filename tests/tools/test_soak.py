"""What ``make soak`` rests on: clients that notice what is wrong, figures that can be read, and a verdict on what grows."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.sdk.client import PipelineClient
from tools.model import LostError
from tools.soak.driver import Driver
from tools.soak.figures import Sample, Sampler
from tools.soak.growth import growths, slowdowns
from tools.soak.record import Call, Record
from tools.soak.visitors import Guests, Reader
from tools.soak.workloads import workloads

if TYPE_CHECKING:
    from tests.inprocess_host import InProcessHost


def samples(values: list[float], name: str = "threads") -> list[Sample]:
    return [Sample(float(at), {name: value}) for at, value in enumerate(values)]


def test_what_keeps_growing_is_told_from_what_fills_up_and_from_noise() -> None:
    assert [growth.keeps_growing for growth in growths(samples([10.0 + at for at in range(40)]))] == [True]
    filled_up = [min(10.0 + 10 * at, 200.0) for at in range(40)]
    assert [growth.keeps_growing for growth in growths(samples(filled_up))] == [False]
    noise = [100.0 + 60 * (at % 3) for at in range(40)]
    assert [growth.keeps_growing for growth in growths(samples(noise))] == [False]
    # Each figure is held against its own bound: thirty MiB more are noise, thirty threads more are not.
    assert [growth.keeps_growing for growth in growths(samples([10.0 + at for at in range(40)], "JVM, resident MiB"))] == [False]
    with pytest.raises(ValueError, match="3 samples are too few"):
        growths(samples([1.0, 2.0, 3.0]))


def test_calls_that_take_longer_and_longer_are_noticed() -> None:
    calls = [Call("step", float(at), 0.1 + at / 20) for at in range(100)]
    calls += [Call("query", float(at), 0.1 + at % 2) for at in range(100)]
    found = {growth.name: growth.keeps_growing for growth in slowdowns(calls, 0.0, 100.0)}
    assert found == {"step, median s": True, "step, 99 % s": True, "query, median s": False, "query, 99 % s": False}


def test_pipelines_are_driven_checked_and_measured(
    embedded_client: PipelineClient, warm_host: InProcessHost, warm_home: Path, tmp_path: Path
) -> None:
    record = Record()
    whole = workloads(tmp_path)[0]
    # Two of its views, and no large requests: the suite has no minutes for this.
    load = replace(whole, views={name: whole.views[name] for name in ("regions", "cheaper")})
    shop = Driver(embedded_client, load, random.Random(1), record)
    try:
        shop.start()
        reader = Reader(embedded_client, [load], random.Random(2), record)
        for act, _ in shop.actions():
            if act not in (shop.load, shop.unload, shop.check):
                act()
        shop.check()
        for _ in range(3):
            reader.one()
        Guests(embedded_client, random.Random(3), record).one()
        assert record.faults == []
        figures = Sampler(warm_home, warm_host.registry._engine, service=1).sample().figures
        assert figures["shared host, JVM, threads"] > 10
        assert figures["store, rows of pipelines"] >= 1
        assert figures["storage, files"] > 5
        # Rows that nobody has written are noticed.
        shop.pipeline.execute("INSERT INTO t VALUES (-1, 1, 1)")
        with pytest.raises(LostError, match=r"found: 1 \[\(-1, 1\)\]"):
            shop.check()
    finally:
        shop.pipeline.stop(force=True, timeout_s=60)
        shop.pipeline.delete(clear_storage=True)
