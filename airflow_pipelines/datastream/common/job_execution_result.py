"""The result of a program that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.datastream.common.job_id import JobID


@dataclass(frozen=True)
class JobExecutionResult:
    """The result of a program that has ended.

    :param job_id: id of the run
    :param net_runtime: the duration of the run, in milliseconds
    :param accumulators: the values of its accumulators by name

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> fruits = env.from_collection(["apples", "pears"]).print("fruit")
    >>> result = env.execute("fruits")
    fruit> apples
    fruit> pears
    >>> result.get_net_runtime() >= 0, result.get_all_accumulator_results()
    (True, {})
    """

    job_id: JobID
    net_runtime: int
    accumulators: Mapping[str, Any] = field(default_factory=dict)

    def get_job_id(self) -> JobID:
        """Return the id of the run.

        :returns: the id
        """
        return self.job_id

    def get_net_runtime(self) -> int:
        """Return the duration of the run.

        :returns: milliseconds
        """
        return self.net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Return the value of an accumulator.

        :param accumulator_name: its name
        :returns: its value, None if there is no such accumulator
        """
        return self.accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Return the values of all accumulators.

        :returns: values by name
        """
        return dict(self.accumulators)

    def is_job_execution_result(self) -> bool:
        """Return True, because the program has ended.

        :returns: True
        """
        return True

    def get_job_execution_result(self) -> JobExecutionResult:
        """Return the result itself.

        :returns: this object
        """
        return self

    def __str__(self) -> str:
        accumulators = "".join(f"\n- {name}: {value}" for name, value in sorted(self.accumulators.items()))
        return f"Job {self.job_id} ran {self.net_runtime} ms{'; accumulators:' + accumulators if accumulators else ''}"
