"""The command ``airflow-pipelines``: serves the REST API, and shows hosts and pipelines."""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from airflow_pipelines.cli.statistics_tables import statistics_tables
from airflow_pipelines.common.class_archive import ARCHIVE, write_archive
from airflow_pipelines.common.pins import SetupError
from airflow_pipelines.common.secret_files import SecretError, SecretFiles
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.running.command import run
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelinesError
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from airflow_pipelines.sdk.wire import path_of
from airflow_pipelines.service.api_keys import KeyScope, new_key
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.cross_site import is_loopback
from airflow_pipelines.service.edits import check_name
from airflow_pipelines.service.hosts import HostUnreachable
from airflow_pipelines.service.version import platform_version
from airflow_pipelines.serving.http_server import server_config

if TYPE_CHECKING:
    from airflow_pipelines.engine.storage.fsck import StorageReport

STOP_WAIT_S = 15.0

cli = typer.Typer(help="Long-lived, stateful Spark pipelines.", no_args_is_help=True, add_completion=False)
hosts_cli = typer.Typer(help="The Spark applications in which pipelines run.", no_args_is_help=True)
pipelines_cli = typer.Typer(help="The pipelines of a store.", no_args_is_help=True)
keys_cli = typer.Typer(help="The API keys of a store.", no_args_is_help=True)
secrets_cli = typer.Typer(help="The values that ${secret:NAME} stands for in programs and configurations.", no_args_is_help=True)
cli.add_typer(keys_cli, name="keys")
cli.add_typer(secrets_cli, name="secrets")
cli.add_typer(hosts_cli, name="hosts")
cli.add_typer(pipelines_cli, name="pipelines")

Url = Annotated[
    str | None, typer.Option(help="Service to use (its key: AIRFLOW_PIPELINES_API_KEY); default: AIRFLOW_PIPELINES_URL, else none")
]
Home = Annotated[Path | None, typer.Option(help="Folder of the store; default: AIRFLOW_PIPELINES_HOME or ~/.airflow_pipelines")]


def main() -> None:
    """Run the command line; an error that the user can act on is printed as one line, without a traceback."""
    try:
        cli()
    except Problem as problem:
        _fail(problem.message)
    except SetupError as error:
        _fail(str(error), code=2)


@cli.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one", min=0, max=65535)] = 8080,
    api_key: Annotated[
        list[str] | None,
        typer.Option(help="Accepted API key, may be repeated; better given as AIRFLOW_PIPELINES_API_KEYS, which ps does not show"),
    ] = None,
    generate_key: Annotated[bool, typer.Option("--generate-key", help="Make an API key for this run and print it")] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Host name under which clients and pages may ask, may be repeated; also AIRFLOW_PIPELINES_ALLOWED_HOSTS"),
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(help="PEM file with a certificate and its chain, for HTTPS; also AIRFLOW_PIPELINES_TLS_CERTIFICATE"),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file with the private key; also AIRFLOW_PIPELINES_TLS_KEY")] = None,
    home: Home = None,
) -> None:
    """Serve the REST API until interrupted. Pipelines and their hosts outlive the service."""
    import uvicorn

    from airflow_pipelines.service.app import create_app

    settings = Settings.load(home)
    generated = [new_key()] if generate_key else []
    settings = replace(
        settings,
        api_keys=(*settings.api_keys, *(api_key or ()), *generated),
        allowed_hosts=(*settings.allowed_hosts, *(allow_host or ())),
        tls_certificate=tls_certificate or settings.tls_certificate,
        tls_key=tls_key or settings.tls_key,
    )
    tls = _tls_options(settings)
    app = create_app(settings)
    keyed = app.state.control_plane.api_keys.are_required()
    if not keyed and not is_loopback(host):
        _fail(
            f"{host} can be reached from other machines, and whoever reaches the service runs programs here: give it an API key "
            "('airflow-pipelines keys create NAME' makes a lasting one, --generate-key one for this run)"
        )
    listener = _listen(host, port)
    address = listener.getsockname()
    name = f"[{address[0]}]" if ":" in address[0] else address[0]
    scheme = "https" if tls else "http"
    typer.echo(f"Serving pipelines of {settings.home} at {scheme}://{name}:{address[1]} (Ctrl-C ends it)")
    for key in generated:
        typer.echo(f"The API key of this run, which is not kept anywhere: {key}")
    if not keyed:
        typer.echo(
            "There is no API key: every user of this machine can run programs here, and nobody from elsewhere. "
            "Start with --generate-key to ask for one"
        )
    elif not tls and not is_loopback(host):
        typer.echo("Keys and rows travel unencrypted: give --tls-certificate and --tls-key, or put a proxy with TLS in between")
    server = uvicorn.Server(server_config(app, ws="websockets-sansio", timeout_graceful_shutdown=3, **tls))
    server.run(sockets=[listener])


cli.command()(run)


@cli.command()
def version() -> None:
    """Print the version."""
    typer.echo(platform_version())


@cli.command()
def fsck(pipeline: Annotated[str, typer.Argument(help="The pipeline's name")], home: Home = None) -> None:
    """Check a pipeline's storage: checkpoints, batches and journal. Nothing is changed; the exit code is 1 if there is damage."""
    # Imported here because the other commands need nothing of the engine.
    from airflow_pipelines.engine.storage.fsck import check_storage

    control_plane = ControlPlane(Settings.load(home))
    record = control_plane.store.require(pipeline)
    folder = control_plane.files.storage(record)
    report = check_storage(folder, record.newest_checkpoint)
    if not report.is_good and not record.fully_stopped:
        # A checkpoint may have replaced the files that were read first before the rest was read.
        report = check_storage(folder, record.newest_checkpoint)
    control_plane.close()
    _print_report(report, pipeline if record.fully_stopped else f"{pipeline} (which is not stopped)")
    if not report.is_good:
        raise SystemExit(1)


@keys_cli.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="What to call the key")],
    scope: Annotated[KeyScope, typer.Option(help="read: what changes nothing; write: everything")] = KeyScope.WRITE,
    home: Home = None,
) -> None:
    """Create an API key and print it once. From then on the service requires a key."""
    control_plane = ControlPlane(Settings.load(home))
    _, key = control_plane.api_keys.create(check_name(name), scope)
    typer.echo(key)
    control_plane.close()


@keys_cli.command("list")
def list_keys(home: Home = None) -> None:
    """List the API keys. The keys themselves are not stored, so they cannot be shown."""
    control_plane = ControlPlane(Settings.load(home))
    table = Table("name", "scope", "id")
    for key in control_plane.api_keys.all():
        table.add_row(key.name, key.scope.value, str(key.id))
    _print(table)
    control_plane.close()


@keys_cli.command("delete")
def delete_key(name: Annotated[str, typer.Argument(help="The key's name")], home: Home = None) -> None:
    """Delete an API key. The service rejects it from now on."""
    control_plane = ControlPlane(Settings.load(home))
    control_plane.api_keys.delete(name)
    control_plane.close()


@secrets_cli.command("set")
def set_secret(name: Annotated[str, typer.Argument(help="The secret's name, with / between its parts")], home: Home = None) -> None:
    """Create a secret or replace its value. The value is read from the standard input, or asked for at a terminal."""
    if sys.stdin.isatty():
        value = typer.prompt("Value", hide_input=True, confirmation_prompt=True)
    else:
        value = sys.stdin.read().removesuffix("\n")
    if not value:
        _fail("The value is empty: nothing was written")
    with _secret_errors():
        SecretFiles(Settings.load(home).secrets).write(name, value)


@secrets_cli.command("list")
def list_secrets(home: Home = None) -> None:
    """List the names of the secrets that belong to no pipeline."""
    for name in SecretFiles(Settings.load(home).secrets).names():
        typer.echo(name)


@secrets_cli.command("delete")
def delete_secret(name: Annotated[str, typer.Argument(help="The secret's name")], home: Home = None) -> None:
    """Delete a secret. Pipelines that refer to it cannot start any more."""
    with _secret_errors():
        SecretFiles(Settings.load(home).secrets).delete(name)


@hosts_cli.command("list")
def list_hosts(home: Home = None) -> None:
    """List the hosts that have not ended."""
    control_plane = ControlPlane(Settings.load(home))
    table = Table("id", "kind", "state", "machine", "pid", "submitted", "log")
    for host in control_plane.registry.live_hosts():
        health = control_plane.hosts.health(host)
        state = f"{health.state}: {health.reason}" if health.reason else health.state.value
        submitted = f"{host.submitted_at:%Y-%m-%d %H:%M:%S}"
        table.add_row(str(host.host_id), host.kind, state, host.machine or "", str(host.pid or ""), submitted, host.log_path)
    _print(table)
    control_plane.close()


@hosts_cli.command("stop")
def stop_hosts(
    host_id: Annotated[str | None, typer.Argument(help="The host's id; default: the shared host")] = None,
    home: Home = None,
) -> None:
    """Stop a host. Pipelines on it stop with an error; their committed state is kept, and the next start resumes from it."""
    control_plane = ControlPlane(Settings.load(home))
    if host_id is None:
        hosts = control_plane.registry.live_hosts("shared")
    else:
        host = control_plane.registry.get(_uuid(host_id))
        hosts = [] if host is None or host.ended_at is not None else [host]
        if not hosts:
            _fail(f"There is no live host {host_id}: see 'airflow-pipelines hosts list'")
    for host in hosts:
        _stop_host(control_plane, host)
        typer.echo(f"Stopped the {host.kind} host {host.host_id}")
    if not hosts:
        typer.echo("There is no shared host")
    control_plane.close()


@hosts_cli.command("archive")
def archive_classes() -> None:
    """Write the classes of Spark to one archive file, which lets hosts of this machine start in two thirds of the time.

    Run it once for each installation, for instance when an image is built, and again after Java or PySpark has changed. The file
    lies beside the installed packages.
    """
    write_archive()
    typer.echo(f"Wrote {ARCHIVE}")


@pipelines_cli.command("list")
def list_pipelines(home: Home = None) -> None:
    """List the pipelines and their statuses."""
    control_plane = ControlPlane(Settings.load(home))
    table = Table("name", "status", "desired", "program", "storage", "error")
    for record in control_plane.pipelines():
        message = (record.deployment_error or {}).get("message", "")
        error = message.splitlines()[0] if message else ""
        desired = record.deployment_desired_status
        table.add_row(record.name, record.deployment_status, desired, record.program_status, record.storage_status.value, error)
    _print(table)
    control_plane.close()


@pipelines_cli.command("stats")
def show_statistics(
    name: Annotated[str, typer.Argument(help="The pipeline's name")],
    as_json: Annotated[bool, typer.Option("--json", help="Write all of it, as the REST API has it")] = False,
    url: Url = None,
    home: Home = None,
) -> None:
    """Show the records that a pipeline's connectors have read and written, and the counters of its stream program's functions."""
    with PipelineClient(url, home=home) as client:
        try:
            if as_json:
                typer.echo(json.dumps(client.get(path_of("pipelines", name, "stats")), indent=2))
                return
            statistics = Pipeline.get(name, client).stats()
        except PipelinesError as error:
            _fail(str(error))
    read = None if statistics.global_metrics is None else statistics.global_metrics.total_processed_records
    typer.echo(f"{name}: {read or 0:,} records processed")
    for table in statistics_tables(statistics):
        _print(table)
    for warning in statistics.warnings or ():
        typer.echo(f"Warning: {warning}")


@pipelines_cli.command("graph")
def draw_pipeline(
    name: Annotated[str, typer.Argument(help="The pipeline's name")],
    output: Annotated[Path | None, typer.Option(help="File for the picture; default: the standard output")] = None,
    url: Url = None,
    home: Home = None,
) -> None:
    """Draw the operators of a pipeline's stream program as an SVG picture."""
    with PipelineClient(url, home=home) as client:
        try:
            text = Pipeline.get(name, client).stream_picture(None if output is None else str(output))
        except (PipelinesError, OSError) as error:
            _fail(str(error))
    typer.echo(text if output is None else f"Wrote {output}")


@pipelines_cli.command("stop")
def stop_pipeline(
    name: Annotated[str, typer.Argument(help="The pipeline's name")],
    force: Annotated[bool, typer.Option("--force", help="Stop at once, without a checkpoint")] = False,
    url: Url = None,
    home: Home = None,
) -> None:
    """Stop a pipeline with a checkpoint, from which its next start resumes."""
    with PipelineClient(url, home=home) as client:
        try:
            Pipeline.get(name, client).stop(force=force)
        except PipelinesError as error:
            _fail(str(error))
    typer.echo(f"Stopped pipeline {name}")


def _stop_host(control_plane: ControlPlane, host: HostRecord) -> None:
    """Ask the host to shut down, then end it if it has not."""
    try:
        answer = control_plane.hosts.call(host, "POST", "/shutdown", timeout_s=5.0)
    except HostUnreachable as error:
        typer.echo(f"The host does not answer ({error}) and is ended", err=True)
        control_plane.registry.end(host.host_id)
    else:
        if not answer.is_success:
            # A shared host that runs pipelines refuses to shut down, but does so cleanly when it finds its row ended.
            control_plane.registry.end(host.host_id)
    deadline = time.monotonic() + STOP_WAIT_S
    while time.monotonic() < deadline and not control_plane.hosts.is_gone(host):
        time.sleep(0.1)
    control_plane.hosts.end(host)


@contextmanager
def _secret_errors() -> Iterator[None]:
    try:
        yield
    except SecretError as error:
        _fail(str(error))


def _tls_options(settings: Settings) -> dict[str, str]:
    """Return uvicorn's options for the certificate of the settings.

    The certificate is loaded here once, so that a bad file is reported in one clear line.
    """
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None:
        return {} if key is None else _fail("A TLS key needs its certificate: give --tls-certificate")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        _fail(f"The TLS certificate {certificate} and its key {key or certificate} cannot be used: {error}")
    return {"ssl_certfile": str(certificate), "ssl_keyfile": str(key or certificate)}


def _listen(host: str, port: int) -> socket.socket:
    """Bind and listen before anything else is started, so that a port in use is reported in one clear line."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror as error:
        _fail(f"There is no address '{host}': {error.strerror}")
    listener = socket.socket(family, kind, protocol)
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        # If it did not listen yet, two servers could both bind, and only the later one would notice.
        listener.listen(2048)
    except OSError as error:
        listener.close()
        _fail(f"Cannot listen on {host}:{port} ({error.strerror}): choose another --port, or end the program that uses it")
    listener.set_inheritable(False)
    return listener


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        _fail(f"'{text}' is no host id: see 'airflow-pipelines hosts list'")


def _print_report(report: StorageReport, pipeline: str) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Storage of pipeline {pipeline}: {report.folder}", markup=False)
    table = Table("part", "state", "details")
    for finding in report.findings:
        state = Text("good", "green") if finding.error is None else Text(finding.error.problem.value, "bold red")
        table.add_row(Text(finding.part), state, Text(finding.summary))
    _print(table)
    if report.refusal is None:
        console.print(f"The next start goes on {report.start}.", markup=False)
    else:
        console.print(Text("The pipeline cannot start: ", "bold red").append(str(report.refusal), "not bold default"))


def _print(table: Table) -> None:
    # Truncated paths and ids are useless, so a narrow terminal or a pipe gets long lines instead.
    console = Console()
    Console(width=None if console.is_terminal else 400).print(table)


def _fail(message: str, code: int = 1) -> NoReturn:
    typer.echo(f"airflow-pipelines: {message}", err=True)
    raise SystemExit(code)
