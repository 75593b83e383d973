"""The published example of modifying a pipeline while it keeps its state, with nothing changed but the imports and the client."""

from __future__ import annotations

from decimal import Decimal

import pytest

from airflow_pipelines.contract.enums import BootstrapPolicy, PipelineStatus
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.runtime_config import RuntimeConfig

pytestmark = pytest.mark.integration


# SQL program parameterized by start and end dates.
def gen_sql(start_date: str, end_date: str) -> str:
    return f"""create table students (
    id bigint,
    name varchar
) with (
    'materialized' = 'true'
);

create table grades (
    student_id bigint,
    class string,
    grade decimal(5,2),
    class_date date
) with (
    'materialized' = 'true'
);

-- Average grade per student per class over a fixed date range.
create view avg_grade as
select
    student_id,
    class,
    AVG(grade) as class_avg
from grades
where
    class_date >= date '{start_date}' and class_date <= date '{end_date}'
group by student_id, class;

-- Similar to avg_grade, but contains student name instead of Id.
create materialized view avg_grade_enriched as
select
    name as student_name,
    class,
    class_avg
from
    avg_grade join students on avg_grade.student_id = students.id;
"""


def test_modify_and_bootstrap(embedded_client: PipelineClient, pipeline_name: str) -> None:
    TEST_CLIENT = embedded_client  # noqa: N806 - the example's name

    # Create and start the pipeline.
    pipeline = PipelineBuilder(
        TEST_CLIENT,
        pipeline_name,
        sql=gen_sql("2025-09-01", "2025-12-15"),
        runtime_config=RuntimeConfig(
            dev_tweaks={"backfill_avoidance": True},  # This should not be necessary once it is enabled by default.
        ),
    ).create_or_replace()

    pipeline.start()
    assert pipeline.status() == PipelineStatus.RUNNING

    # Feed some input data.
    pipeline.execute("insert into students values (1, 'Alice'), (2, 'Bob')")
    pipeline.execute("""insert into grades values
(1, 'algebra', 97, '2025-09-15'),
(1, 'physics', 89, '2025-11-15'),
(2, 'algebra', 85, '2025-10-22'),
(2, 'physics', 93, '2025-12-05'),
(1, 'algebra', 95, '2026-01-15'),
(1, 'physics', 87, '2026-03-15'),
(2, 'algebra', 98, '2026-04-22'),
(2, 'physics', 91, '2026-05-05')
""")

    # Validate outputs.
    result = list(pipeline.query("SELECT * FROM avg_grade_enriched order by student_name, class"))
    assert result == [
        {"student_name": "Alice", "class": "algebra", "class_avg": Decimal("97.00")},
        {"student_name": "Alice", "class": "physics", "class_avg": Decimal("89.00")},
        {"student_name": "Bob", "class": "algebra", "class_avg": Decimal("85.00")},
        {"student_name": "Bob", "class": "physics", "class_avg": Decimal("93.00")},
    ]

    pipeline.stop(force=True)

    additional_view = """
create materialized view avg_grade_all_courses as
select
    student_id,
    avg(class_avg) as avg
from avg_grade
group by student_id;"""

    # Make two changes to the pipeline:
    # 1. Add a new view.
    # 2. Modify the avg_grade view, extending its date range.
    pipeline.modify(sql=gen_sql("2025-09-01", "2026-06-10") + additional_view)

    # Start the pipeline with await_approval bootstrap policy.
    pipeline.start(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL)
    assert pipeline.status() == PipelineStatus.AWAITINGAPPROVAL

    # When in the AwaitingApproval state, deployment_runtime_status_details shows
    # changes between the current and the checkpointed version of the pipeline.
    # Note: the avg_grade_enriched view is modified, as it depends on the modified avg_grade view.
    diff = pipeline.deployment_runtime_status_details()

    assert diff == {
        "added_input_connectors": [],
        "added_output_connectors": [],
        "modified_input_connectors": [],
        "modified_output_connectors": [],
        "program_diff": {
            "added_tables": [],
            "added_views": ["avg_grade_all_courses"],
            "modified_tables": [],
            "modified_views": ["avg_grade", "avg_grade_enriched"],
            "removed_tables": [],
            "removed_views": [],
        },
        "program_diff_error": None,
        "removed_input_connectors": [],
        "removed_output_connectors": [],
    }

    # Approve the changes and wait for the pipeline to complete bootstrapping new
    # and modified views and reach the RUNNING state.
    pipeline.approve()

    pipeline.wait_for_status(PipelineStatus.RUNNING, timeout=300)

    # The new outputs should reflect input data within the modified date range.
    result = list(pipeline.query("SELECT * FROM avg_grade_enriched order by student_name, class"))

    assert result == [
        {"student_name": "Alice", "class": "algebra", "class_avg": Decimal("96.00")},
        {"student_name": "Alice", "class": "physics", "class_avg": Decimal("88.00")},
        {"student_name": "Bob", "class": "algebra", "class_avg": Decimal("91.50")},
        {"student_name": "Bob", "class": "physics", "class_avg": Decimal("92.00")},
    ]

    result = list(pipeline.query("SELECT * FROM avg_grade_all_courses order by student_id"))
    assert result == [
        {"student_id": 1, "avg": Decimal("92.00")},
        {"student_id": 2, "avg": Decimal("91.75")},
    ]
