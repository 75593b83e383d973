"""The parts of the benchmark. Each runs in a process of its own, so that none inherits another one's JVM and memory."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import cast

from benchmarks.measure import Measurement
from benchmarks.options import Options

Measure = Callable[[Options], list[Measurement]]


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its name, the module with its ``measure``, and what it measures."""

    name: str
    module: str
    title: str

    def run(self, options: Options) -> list[Measurement]:
        """Measure in a process of its own.

        :raises BrokenProcessPool: when that process dies
        """
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(_measured, self.module, options).result()


def _measured(module: str, options: Options) -> list[Measurement]:
    return cast(Measure, importlib.import_module(module).measure)(options)


PARTS = (
    Part("lifecycle", "benchmarks.lifecycle", "what a user waits for"),
    Part("control", "benchmarks.control", "status of fifty pipelines, and plans of changes of one that works"),
    Part("airflow", "benchmarks.airflow_face", "imports, and two hundred deferred waits on one event loop"),
    Part("latency", "benchmarks.latency", "a change of one row until a query shows it"),
    Part("contention", "benchmarks.contention", "answers while sixty heavy queries run"),
    Part("many", "benchmarks.many", "fifty pipelines of one host, twenty clients"),
    Part("step_cost", "benchmarks.step_cost", "steps over a large state"),
    Part("tpch", "benchmarks.tpch.speed", "change against recompute for the TPC-H queries"),
    Part("nexmark", "benchmarks.nexmark.speed", "throughput for the Nexmark queries, next to other systems"),
    Part("streams", "benchmarks.streams.speed", "throughput and latency of stream programs, next to other systems"),
    Part("connectors", "benchmarks.connectors.speed", "inputs and outputs, next to the systems' own programs"),
    Part("spill", "benchmarks.spill", "state larger than memory"),
    Part("large_results", "benchmarks.large_results", "ten million rows through egress and queries"),
    Part("memory", "benchmarks.memory", "memory over many small steps"),
)
