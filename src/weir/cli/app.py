"""The commands, and how an error of the user is told."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from weir.cli import bench, demo, lab
from weir.cli import driver as driver_lab
from weir.cli import grubjoin as grubjoin_lab
from weir.cli import jaqpot as jaqpot_lab
from weir.cli import psp as psp_lab
from weir.cli import run as jobs
from weir.cli import storm as storm_lab
from weir.errors import QueryError

app = typer.Typer(
    help="Joins many streams, in windows.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
benchmarks = typer.Typer(help="Measure how fast a part of weir is.", no_args_is_help=True)
app.add_typer(benchmarks, name="bench")
experiments = typer.Typer(help="Repeat a paper's experiments, on a virtual clock.", no_args_is_help=True)
app.add_typer(experiments, name="lab")


def main() -> None:
    """Run the command line; a mistake of the user ends in one sentence and exit code 2."""
    try:
        app()
    except QueryError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"weir {version('weir')}")
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


@benchmarks.command("kernel")
def _bench_kernel(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller inputs, fewer repetitions.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here.")] = None,
) -> None:
    """How fast the join itself is, on one core."""
    bench.kernel(quick, json_file, Console())


@benchmarks.command("spark")
def _bench_spark(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller inputs, fewer repetitions.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here.")] = None,
) -> None:
    """How fast joins run on Spark, beside Spark's own."""
    bench.spark(quick, json_file, Console())


@benchmarks.command("psp")
def _bench_psp(
    quick: Annotated[bool, typer.Option("--quick", help="Small images, few batches.")] = False,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Also write every batch here.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here.")] = None,
) -> None:
    """Images joined by a Python predicate: one partition, two, and Spark's own join."""
    bench.psp(quick, csv_file, json_file, Console())


@benchmarks.command("model")
def _bench_model(
    quick: Annotated[bool, typer.Option("--quick", help="A third of the queries.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here.")] = None,
) -> None:
    """How near predicted CPU and memory come to what random queries take."""
    bench.model(quick, json_file, Console())


@benchmarks.command("soak")
def _bench_soak(
    quick: Annotated[bool, typer.Option("--quick", help="60 batches instead of 600.")] = False,
    hours: Annotated[
        float | None,
        typer.Option(min=0.05, help="A query that adapts to changing rates, for hours of event time."),
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="With --hours: in this process.")] = False,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Also write every batch here.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here.")] = None,
) -> None:
    """Whether anything grows in a long run."""
    bench.soak(quick, hours, local, csv_file, json_file, Console())


@benchmarks.command("crash")
def _bench_crash(
    kills: Annotated[int | None, typer.Option(min=1, help="How often to kill; 200 unless said.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few kills only.")] = False,
    seed: Annotated[int | None, typer.Option(help="Repeat a run.")] = None,
) -> None:
    """Whether a job on Spark that is killed again and again loses or doubles a row."""
    if not bench.crash(kills, quick, seed, Console()):
        raise typer.Exit(1)


@experiments.callback()
def _lab() -> None:
    pass


@experiments.command("qualified")
def _lab_qualified(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings, shorter runs.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("lab/out"),
) -> None:
    """Which join tree fits both CPU and memory, and how fast it is found."""
    lab.qualified(quick, out, Console())


@experiments.command("jaqpot")
def _lab_jaqpot(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings, shorter runs.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("lab/out/jaqpot"),
    data: Annotated[
        Path | None,
        typer.Option(help="Readings of the Intel lab: Parquet, or its data.txt. Made up without it."),
    ] = None,
) -> None:
    """Who gets scarce probes: the most results, and none of them stale."""
    jaqpot_lab.jaqpot(quick, out, data, Console())


@experiments.command("grubjoin")
def _lab_grubjoin(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings, shorter runs.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("lab/out/grubjoin"),
) -> None:
    """Which ages of a window are worth looking at, beside dropping rows at random."""
    grubjoin_lab.grubjoin(quick, out, Console())


@experiments.command("driver")
def _lab_driver(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller streams, fewer repeats.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("lab/out/driver"),
) -> None:
    """Which stream of a batch goes first: how early results are there, and what it costs."""
    driver_lab.driver(quick, out, Console())


@experiments.command("psp")
def _lab_psp(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings, shorter runs.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("lab/out/psp"),
) -> None:
    """How long a ring of machines should be, beside routing copies of rows."""
    psp_lab.psp(quick, out, Console())


@experiments.command("storm")
def _lab_storm(
    quick: Annotated[bool, typer.Option("--quick", help="Shorter phases.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("lab/out/storm"),
) -> None:
    """One query on Spark while rates, lags, selectivities and memory change, in real time."""
    storm_lab.storm(quick, out, Console())
