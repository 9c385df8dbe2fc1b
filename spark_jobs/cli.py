"""`deltaward spark`: commands that run jobs on Spark and the local Connect server."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs import connect_server, main

app = typer.Typer(
    help="Run jobs on Spark.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


@app.command()
def run(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="JobSpec as a JSON file.", exists=True, dir_okay=False)
    ],
    result: Annotated[
        Path | None, typer.Option(help="File for the JobResult. It is printed when this is left out.")
    ] = None,
    remote: Annotated[str | None, typer.Option(help="Spark Connect URL, sc://host:port.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master, such as local[2].")] = None,
) -> None:
    """Run one job. The exit code is 0 only when the job succeeded."""
    engine = [
        part
        for name, value in (("--remote", remote), ("--master", master))
        if value
        for part in (name, value)
    ]
    if result is not None:
        raise typer.Exit(main.main(["--spec", str(spec), "--result", str(result), *engine]))
    with tempfile.TemporaryDirectory(prefix="deltaward-") as folder:
        target = Path(folder) / "result.json"
        code = main.main(["--spec", str(spec), "--result", str(target), *engine])
        typer.echo(target.read_text(encoding="utf-8"))
    raise typer.Exit(code)


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Loopback port; 0 picks a free one.")] = 0,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
    driver_memory: Annotated[str, typer.Option(help="Memory of the server's JVM.")] = "1g",
    directory: Annotated[Path, typer.Option(help="Directory for the server's log and scratch files.")] = Path(
        "."
    ),
    pid_file: Annotated[
        Path | None, typer.Option(help="File to write '<pid> <port>' to when the server answers.")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A Spark setting. It can be repeated.")
    ] = None,
) -> None:
    """Run a local Spark Connect server until it is interrupted."""
    arguments = [
        "--port",
        str(port),
        "--master",
        master,
        "--driver-memory",
        driver_memory,
        "--directory",
        str(directory),
    ]
    if pid_file is not None:
        arguments += ["--pid-file", str(pid_file)]
    for entry in conf or []:
        arguments += ["--conf", entry]
    raise typer.Exit(connect_server.main(arguments))
