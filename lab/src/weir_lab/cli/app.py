"""The commands of `weir-lab`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from weir.errors import QueryError
from weir_lab.cli import bench, driver, grubjoin, jaqpot, psp, qualified, storm

app = typer.Typer(
    help="Repeat the papers' experiments, and measure how fast weir is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
benchmarks = typer.Typer(help="Measure how fast a part of weir is.", no_args_is_help=True)
app.add_typer(benchmarks, name="bench")


def main() -> None:
    """Run the command line; a mistake of the user ends in one sentence and exit code 2."""
    try:
        app()
    except QueryError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


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


@app.command("qualified")
def _qualified(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings, shorter runs.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("out"),
) -> None:
    """Which join tree fits both CPU and memory, and how fast it is found."""
    qualified.qualified(quick, out, Console())


@app.command("jaqpot")
def _jaqpot(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings, shorter runs.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("out/jaqpot"),
    data: Annotated[
        Path | None,
        typer.Option(help="Readings of the Intel lab: Parquet, or its data.txt. Made up without it."),
    ] = None,
) -> None:
    """Who gets scarce probes: the most results, and none of them stale."""
    jaqpot.jaqpot(quick, out, data, Console())


@app.command("grubjoin")
def _grubjoin(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings, shorter runs.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("out/grubjoin"),
) -> None:
    """Which ages of a window are worth looking at, beside dropping rows at random."""
    grubjoin.grubjoin(quick, out, Console())


@app.command("driver")
def _driver(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller streams, fewer repeats.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("out/driver"),
) -> None:
    """Which stream of a batch goes first: how early results are there, and what it costs."""
    driver.driver(quick, out, Console())


@app.command("psp")
def _psp(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings, shorter runs.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("out/psp"),
) -> None:
    """How long a ring of machines should be, beside routing copies of rows."""
    psp.psp(quick, out, Console())


@app.command("storm")
def _storm(
    quick: Annotated[bool, typer.Option("--quick", help="Shorter phases.")] = False,
    out: Annotated[Path, typer.Option(help="Where CSV files and pictures go.")] = Path("out/storm"),
) -> None:
    """One query on Spark while rates, lags, selectivities and memory change, in real time."""
    storm.storm(quick, out, Console())
