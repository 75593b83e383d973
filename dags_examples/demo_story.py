"""What the demo tells about a run of the example DAG, from the results that its tasks left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

Results = Mapping[str, Any]


def introduction(console: Console) -> None:
    """Announce the demo."""
    console.print(
        Panel(
            "A school's grades in a pipeline: a long-lived Spark job that keeps every average equal to its query. The DAG "
            "[bold]student_grades[/] deploys it, loads it, checkpoints it, changes its program with approval, and stops it.\n"
            "Source: dags_examples/student_grades.py",
            title="Airflow Pipelines",
            border_style="cyan",
        )
    )


def first_run(console: Console, results: Results) -> None:
    """Tell the six steps of the first run."""
    console.rule("[bold]First run of the DAG")
    _step(
        console, 1, f"Deployed [bold]{results['deploy']['pipeline']}[/]: {results['deploy']['action']}, program compiled by Spark."
    )
    files = results["figures_after_files"]
    _step(
        console,
        2,
        f"Started it ({results['start']['status']}) and waited by completion token and sensor: {_connectors(files)}. The averages "
        "of the autumn, 2025-09-01 to 2025-12-15:",
    )
    _rows(console, "avg_grade_enriched", results["first_answer"]["rows"])
    _step(
        console,
        3,
        "Pushed one more grade over HTTP (Bob, algebra, 95.00) and waited until the pipeline was idle:",
    )
    _rows(console, "avg_grade_enriched", results["second_answer"]["rows"], results["first_answer"]["rows"])
    _step_figures(console, results["figures_after_push"])
    console.print("   The grade was entered for the wrong student, so it was deleted again the same way.\n")
    checkpoint = results["checkpoint"]
    _step(
        console,
        4,
        f"Took checkpoint {checkpoint['checkpoint']} (step {checkpoint['steps']}, {checkpoint['processed_records']} records) and "
        f"copied it to the object store.",
    )
    _step(
        console,
        5,
        "Stopped it, changed the program (dates to 2026-06-10, new view avg_grade_all_courses) and started it: it is "
        f"{results['start_changed']['status']} and shows what differs from its checkpoint:",
    )
    _diff(console, results["approve"]["diff_text"])
    console.print(
        f"   Approved: {'yes' if results['approve']['approved'] else 'no'}. The changed views were computed from the rows it has, "
        f"no file was read again; it is {results['running']['status']}:\n"
    )
    _rows(console, "avg_grade_enriched", results["third_answer"]["rows"], results["first_answer"]["rows"])
    _rows(console, "avg_grade_all_courses", results["all_courses"]["rows"])
    _step(console, 6, f"Stopped it with a checkpoint ({results['stop']['checkpoint']}).")
    console.print(f"   Counters at the end: {_counters(results['figures_at_the_end'])}\n")


def second_run(console: Console, results: Results) -> None:
    """Tell that the second run resumed from the state of the first."""
    console.rule("[bold]Second run of the same DAG")
    files = results["figures_after_files"]
    step = files["latest_step"]
    read_again = "no row was read again" if step is None else f"its latest step took {step['input_rows']} rows"
    console.print(
        f"   Deploy: {results['deploy']['action']}. Start: {results['start']['status']}, resumed from the checkpoint.\n"
        f"   The files are where they were: {_connectors(files)} in total, {read_again}.\n"
        f"   The counters go on: {_counters(files)}\n"
        "   The first query already has the answer of the changed program:\n"
    )
    _rows(console, "avg_grade_enriched", results["first_answer"]["rows"])
    changed = "nothing to change" if not results["modify"]["changed"] else f"changed {', '.join(results['modify']['changed'])}"
    approved = "a change was approved" if results["approve"]["approved"] else "nothing to approve"
    console.print(
        f"   The same grade was pushed and taken back; then: {changed}, {approved}, {results['running']['status']}.\n"
        f"   Counters at the end: {_counters(results['figures_at_the_end'])}\n"
    )


def farewell(console: Console, folder: Path, seconds: float) -> None:
    """Where to look next."""
    console.print(
        Panel(
            f"Done in {seconds:.0f} s; the Spark host is stopped. Airflow's log, the store, the state and the object store are in "
            f"{escape(str(folder))}.",
            border_style="green",
        )
    )


def _step(console: Console, number: int, text: str) -> None:
    console.print(f"[bold cyan]{number}.[/] {text}\n")


def _rows(console: Console, title: str, rows: list[dict[str, Any]], before: Iterable[dict[str, Any]] = ()) -> None:
    """Print the rows as a table; those that are not among ``before`` stand out."""
    table = Table(title=title, title_justify="left", title_style="italic")
    known = list(before)
    for name in rows[0] if rows else ():
        table.add_column(name)
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row.values()), style="yellow" if known and row not in known else None)
    console.print(table, "")


def _step_figures(console: Console, figures: Mapping[str, Any]) -> None:
    """Print the figures of one step."""
    step = figures["latest_step"]
    table = Table(title=f"step {step['step']}: only the change was computed", title_justify="left", title_style="italic")
    for name in ("view", "how", "rows in", "rows out", "ms"):
        table.add_column(name, justify="left" if name in ("view", "how") else "right")
    for one in step["operators"]:
        table.add_row(one["view"], one["strategy"], str(one["rows_in"]), str(one["rows_out"]), f"{one['duration_ms']:.0f}")
    table.add_section()
    table.add_row("whole step", "", str(step["input_rows"]), "", f"{step['duration_ms']:.0f}")
    console.print(table, "")


def _diff(console: Console, text: str) -> None:
    styles = {"+": "green", "~": "yellow", "-": "red"}
    for line in text.splitlines():
        console.print(f"   {escape(line)}", style=styles.get(line[0]))
    console.print()


def _connectors(figures: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} rows from {name}" for name, count in figures["connectors"].items())


def _counters(figures: Mapping[str, Any]) -> str:
    return f"{figures['total_input_records']} records in, {figures['total_completed_steps']} steps"
