"""The commands of `weir`, their options, and how user errors are printed."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from weir.cli import demo
from weir.cli import run as jobs
from weir.errors import QueryError

app = typer.Typer(
    help="Join many streams inside windows, on Apache Spark or in one process.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; a user error prints one sentence and exits with code 2."""
    try:
        app()
    except QueryError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"weir {version('weir-streams')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


Job = Annotated[Path, typer.Argument(help="Job script: CREATE STREAM statements and one SELECT ... INTO.")]
Partitions = Annotated[
    int | None,
    typer.Option(min=1, help="Number of partitions of the join.", show_default="number of cores"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", metavar="KEY=VALUE", help="Spark setting, like spark.master=local[2]; repeatable."
    ),
]


@app.command("run")
def _run(
    job: Job,
    once: Annotated[bool, typer.Option("--once", help="Stop after reading all available rows.")] = False,
    checkpoint: Annotated[
        str | None, typer.Option(help="Folder of the state; overrides the script's checkpointLocation.")
    ] = None,
    partitions: Partitions = None,
    conf: Settings = None,
) -> None:
    """Run a job script on Spark and show the progress of each batch."""
    jobs.run(job, once, checkpoint, partitions, jobs.parse_settings(conf or []), Console())


@app.command("explain")
def _explain(
    job: Job,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print the plan only, as a Mermaid chart.")
    ] = False,
    partitions: Partitions = None,
    conf: Settings = None,
) -> None:
    """Explain a job script: its sources, sink, query and join plan."""
    jobs.explain(job, mermaid, partitions, jobs.parse_settings(conf or []), Console())


@app.command("demo")
def _demo(
    batches: Annotated[int, typer.Option(min=1, help="Micro-batches of one second of trades each.")] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generated trades.")] = 7,
    rows_per_second: Annotated[int, typer.Option(min=1, help="Trades per second on each exchange.")] = 200,
    local: Annotated[bool, typer.Option("--local", help="Run in this process, without Spark.")] = False,
) -> None:
    """Join generated trades of three stock exchanges and show the progress."""
    demo.run_demo(batches, seed, rows_per_second, local, Console())
