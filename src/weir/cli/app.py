"""The commands, and how an error of the user is told."""

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
    help="Joins many streams, in windows.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; a mistake of the user ends in one sentence and exit code 2."""
    try:
        app()
    except QueryError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"weir {version('weir-streams')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


Job = Annotated[Path, typer.Argument(help="A script of CREATE STREAM statements and a SELECT ... INTO.")]
Partitions = Annotated[
    int | None, typer.Option(min=1, help="How many tasks share the join.", show_default="the cores")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark's, like spark.master=local[2]."),
]


@app.command("run")
def _run(
    job: Job,
    once: Annotated[bool, typer.Option("--once", help="Stop when all that is there has been read.")] = False,
    checkpoint: Annotated[
        str | None, typer.Option(help="Where the state is kept; goes before the script's checkpointLocation.")
    ] = None,
    partitions: Partitions = None,
    conf: Settings = None,
) -> None:
    """Run a job script on Spark until it is stopped, and watch."""
    jobs.run(job, once, checkpoint, partitions, jobs.settings_of(conf or []), Console())


@app.command("explain")
def _explain(
    job: Job,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Only the plan, as a Mermaid chart.")] = False,
    partitions: Partitions = None,
    conf: Settings = None,
) -> None:
    """Print what a job script asks and how it would be answered."""
    jobs.explain(job, mermaid, partitions, jobs.settings_of(conf or []), Console())


@app.command("demo")
def _demo(
    batches: Annotated[int, typer.Option(min=1, help="Micro-batches, one second of trades each.")] = 12,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same trades.")] = 7,
    rows_per_second: Annotated[int, typer.Option(min=1, help="Trades per second on each exchange.")] = 200,
    local: Annotated[bool, typer.Option("--local", help="In this process, without Spark.")] = False,
) -> None:
    """Join the trades of three stock exchanges and watch."""
    demo.play(batches, seed, rows_per_second, local, Console())
