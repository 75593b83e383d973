"""The command ``airflow-pipelines run``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from airflow_pipelines.contract.statuses import CrashGuarantee
from airflow_pipelines.program.stream_files import StreamFilesError
from airflow_pipelines.running.deploying import ChangeDeclined, Deploying
from airflow_pipelines.running.following import End, Following, LogFollower
from airflow_pipelines.running.terminal import TerminalPerson, TerminalScreen
from airflow_pipelines.running.wanted import Wanted
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelinesError
from airflow_pipelines.sdk.stream_collecting import collect_stream_files

FAILED, DECLINED, INTERRUPTED = 1, 3, 130
"""Exit codes, in this order: the program, the pipeline or an output failed; a change was not approved; Ctrl-C."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run.

    :param approves_all: True if changes are approved without a question
    :param waits: True if the pipeline is followed until its inputs have ended
    :param stays_up: True if the pipeline keeps running after its inputs have ended
    """

    approves_all: bool = False
    waits: bool = True
    stays_up: bool = False


def run(
    program: Annotated[Path, typer.Argument(help="Python file of the program, or a folder with a __main__.py")],
    arguments: Annotated[list[str] | None, typer.Argument(help="What the program finds on its command line, after --")] = None,
    name: Annotated[str, typer.Option(help="Name of the pipeline; default: that of the file")] = "",
    sql: Annotated[Path | None, typer.Option(help="File with SQL tables and views of the same pipeline")] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(help="Other file or folder that the program needs, relative to its folder; may be repeated"),
    ] = None,
    fault_tolerance: Annotated[
        CrashGuarantee | None, typer.Option(help="What a crash may cost: see the Python SDK's page, Waiting")
    ] = None,
    checkpoint_interval: Annotated[int | None, typer.Option(help="Seconds between checkpoints", min=1)] = None,
    workers: Annotated[int | None, typer.Option(help="Number of Spark's shuffle partitions on a dedicated host", min=1)] = None,
    wait: Annotated[bool, typer.Option(help="Follow the pipeline until its inputs have ended")] = True,
    keep_running: Annotated[bool, typer.Option("--keep-running", help="Leave the pipeline up when its inputs have ended")] = False,
    approve: Annotated[bool, typer.Option("--approve", help="Make changes of an existing pipeline without a question")] = False,
    url: Annotated[
        str | None,
        typer.Option(help="Service to use (its key: AIRFLOW_PIPELINES_API_KEY); default: AIRFLOW_PIPELINES_URL, else none"),
    ] = None,
    home: Annotated[Path | None, typer.Option(help="Folder of the store, for a run without a service")] = None,
) -> None:
    """Run a stream program as a pipeline: create or change the pipeline, start it, and follow it until its inputs have ended.

    The pipeline outlives this command: Ctrl-C leaves it running. Exit codes: 0 if it ended well; 1 if the program or the pipeline
    failed, or if an output failed (the pipeline then keeps running); 3 if a change was not approved; 130 after Ctrl-C.
    """
    console = Console(stderr=True, highlight=False)
    options = RunOptions(approves_all=approve, waits=wait, stays_up=keep_running)
    try:
        files = collect_stream_files(program, file or ())
        wanted = Wanted(
            name or _name_of(program),
            files,
            tuple(arguments or ()),
            None if sql is None else sql.read_text(encoding="utf-8"),
            _runtime_config(fault_tolerance, checkpoint_interval, workers),
        )
    except (StreamFilesError, OSError, UnicodeDecodeError) as error:
        _fail(str(error))
    with PipelineClient(url, home=home) as client:
        where = f" --url {url}" if url else f" --home {home}" if home else ""
        try:
            _run(client, wanted, options, console, where)
        except ChangeDeclined as declined:
            _fail(str(declined), DECLINED)
        except PipelinesError as error:
            _fail(str(error))
        except KeyboardInterrupt:
            console.print(f"Pipeline {wanted.name!r} goes on running. {_describe_commands(wanted.name, where)}", markup=False)
            raise SystemExit(INTERRUPTED) from None


def _run(client: PipelineClient, wanted: Wanted, options: RunOptions, console: Console, where: str) -> None:
    person, screen = TerminalPerson(console, approves_all=options.approves_all), TerminalScreen(console)
    deploying = Deploying(client, wanted, person)
    prepared = deploying.prepare()
    pipeline, log = prepared.pipeline, LogFollower(prepared.pipeline)
    deploying.bring_up(prepared)
    if not options.waits:
        person.tell(f"Pipeline {wanted.name!r} is running. {_describe_commands(wanted.name, where)}")
        return
    following = Following(pipeline, log, screen)
    with screen.showing():
        end = following.until_end()
    if end is End.FAILED:
        error = pipeline.deployment_error()
        message = error.get("message") if isinstance(error, Mapping) else error
        _fail(f"pipeline {wanted.name!r} stopped with an error: {message}")
    for text in following.what_waits() if end is End.COMPLETE else ():
        person.tell(text)
    if end is End.UNDELIVERED:
        reasons = "; ".join(f"output {name} has failed: {reason}" for name, reason in following.failed_outputs.items())
        _fail(f"pipeline {wanted.name!r} runs on, but delivers nothing more there: {reasons}")
    if end is End.COMPLETE and not options.stays_up:
        person.tell("All inputs have ended: stopping the pipeline with a checkpoint")
        pipeline.stop(force=False)
        following.last_lines()
    person.tell(f"Pipeline {wanted.name!r}: {end.value}")


def _runtime_config(fault_tolerance: CrashGuarantee | None, checkpoint_interval: int | None, workers: int | None) -> dict[str, Any]:
    """Return the given values of the runtime configuration in wire form."""
    model = {} if fault_tolerance is None else {"model": fault_tolerance.value}
    interval = {} if checkpoint_interval is None else {"checkpoint_interval_secs": checkpoint_interval}
    config: dict[str, Any] = {} if workers is None else {"workers": workers}
    return config | ({"fault_tolerance": model | interval} if model or interval else {})


def _name_of(program: Path) -> str:
    return program.resolve().stem


def _describe_commands(name: str, where: str) -> str:
    """Return what can be done with a pipeline that is left running.

    :param name: the pipeline
    :param where: the options of commands that say where it is, with a space before
    """
    pipelines = "airflow-pipelines pipelines"
    return (
        f"Its log and its progress: the same command again. Its state: {pipelines} stats {name}{where}. To stop it with a"
        f" checkpoint, from which its next run goes on: {pipelines} stop {name}{where}"
    )


def _fail(message: str, code: int = FAILED) -> NoReturn:
    typer.echo(f"airflow-pipelines: {message}", err=True)
    raise SystemExit(code)
