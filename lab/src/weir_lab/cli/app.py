"""The commands of `weir-lab`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from weir.errors import QueryError
from weir_lab.cli import bench, driver, fuzz, grubjoin, jaqpot, protocol, psp, qualified, regret, storm

JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Also write every batch to this file.")]
Out = Annotated[Path, typer.Option(help="The folder for CSV files and pictures.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer settings, shorter runs.")]

app = typer.Typer(
    help="Repeat the experiments of the papers behind weir, and measure how fast weir is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
benchmarks = typer.Typer(help="Measure weir beside something else in the same run.", no_args_is_help=True)
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
    json_file: JsonFile = None,
) -> None:
    """Measure the join kernel on one core, beside NumPy, DuckDB and Polars."""
    bench.kernel(quick, json_file, Console())


@benchmarks.command("spark")
def _bench_spark(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller inputs, fewer repetitions.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Measure joins on Spark, beside Spark's own joins."""
    bench.spark(quick, json_file, Console())


@benchmarks.command("shapes")
def _bench_shapes(
    data: Annotated[
        Path | None, typer.Option(help="A folder with real data; questions over its files join the others.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller inputs, fewer repetitions.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Measure joins of sparse, dense, skewed and real data, in one process and on Spark, beside DuckDB."""
    bench.shapes(data, quick, json_file, Console())


@benchmarks.command("batches")
def _bench_batches(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer batches.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Measure what a small batch costs on Spark, beside a plain foreachBatch."""
    bench.batches(quick, json_file, Console())


@benchmarks.command("wide")
def _bench_wide(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Measure the memory that 50 million results and rows of a megabyte take, in one process and on Spark."""
    bench.wide(quick, json_file, Console())


@benchmarks.command("peers")
def _bench_peers(
    quick: Annotated[bool, typer.Option("--quick", help="Shorter runs, one round.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Measure a join on weir beside Flink, Spark's own joins and DuckDB; needs `make peers`."""
    bench.peers(quick, json_file, Console())


@benchmarks.command("psp")
def _bench_psp(
    quick: Annotated[bool, typer.Option("--quick", help="Small images, few batches.")] = False,
    csv_file: CsvFile = None,
    json_file: JsonFile = None,
) -> None:
    """Measure a join of images by a Python predicate: one partition, two, and Spark's own join."""
    bench.psp(quick, csv_file, json_file, Console())


@benchmarks.command("model")
def _bench_model(
    quick: Annotated[bool, typer.Option("--quick", help="A third of the queries.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Compare the CPU and memory that the cost model predicts with what random queries take."""
    bench.model(quick, json_file, Console())


@benchmarks.command("soak")
def _bench_soak(
    quick: Annotated[bool, typer.Option("--quick", help="60 batches instead of 600.")] = False,
    hours: Annotated[
        float | None,
        typer.Option(min=0.05, help="A query that adapts to changing rates, for hours of event time."),
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="With --hours: run in this process, without Spark.")
    ] = False,
    csv_file: CsvFile = None,
    json_file: JsonFile = None,
) -> None:
    """Run a query for long, and check that nothing grows."""
    bench.soak(quick, hours, local, csv_file, json_file, Console())


@benchmarks.command("attack")
def _bench_attack(
    quick: Annotated[bool, typer.Option("--quick", help="A few attacks of each kind.")] = False,
    only: Annotated[
        str | None,
        typer.Option(
            help="corruption, power-cuts, disk-cuts, races, full-disk, clocks, step-kills, random-kills "
            "or soak."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of a run to repeat.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Attack joins on Spark: power cuts, second drivers, full disks, damaged files, kills and bad clocks."""
    if not bench.attack(quick, only, seed, json_file, Console()):
        raise typer.Exit(1)


@app.command("qualified")
def _qualified(
    quick: Quick = False,
    out: Out = Path("out/qualified"),
) -> None:
    """Zhu et al. 2010: find join trees that fit both CPU and memory."""
    qualified.qualified(quick, out, Console())


@app.command("jaqpot")
def _jaqpot(
    quick: Quick = False,
    out: Out = Path("out/jaqpot"),
    data: Annotated[
        Path | None,
        typer.Option(
            help="Sensor readings of the Intel lab: Parquet, or its data.txt. Default: generated readings."
        ),
    ] = None,
) -> None:
    """Mukherji et al. 2011: divide scarce probes for the most results, none of them stale."""
    jaqpot.jaqpot(quick, out, data, Console())


@app.command("grubjoin")
def _grubjoin(
    quick: Quick = False,
    out: Out = Path("out/grubjoin"),
) -> None:
    """Gedik et al. 2007: probe the ages of a window that match most, beside dropping rows at random."""
    grubjoin.grubjoin(quick, out, Console())


@app.command("driver")
def _driver(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller streams, fewer repeats.")] = False,
    out: Out = Path("out/driver"),
) -> None:
    """Valsomatzis and Gounaris 2013: choose which stream of a batch is processed first."""
    driver.driver(quick, out, Console())


@app.command("psp")
def _psp(
    quick: Quick = False,
    out: Out = Path("out/psp"),
) -> None:
    """Wang and Rundensteiner 2009: spread a join over a ring of machines, beside routing copies of rows."""
    psp.psp(quick, out, Console())


@app.command("storm")
def _storm(
    quick: Annotated[bool, typer.Option("--quick", help="Shorter phases.")] = False,
    out: Out = Path("out/storm"),
) -> None:
    """Run one adaptive query on Spark while rates, lags, selectivities and memory change."""
    storm.storm(quick, out, Console())


@app.command("regret")
def _regret(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and fixed decisions, shorter phases, no Spark.")
    ] = False,
    only: Annotated[
        str | None, typer.Option(help="One part: steady, real, spark, or a scenario like 'lag jump'.")
    ] = None,
    out: Out = Path("out/regret"),
    json_file: JsonFile = None,
) -> None:
    """Hold budgets and the recall that is told against a known truth and the best fixed decision."""
    regret.regret(quick, only, out, json_file, Console())


@app.command("protocol")
def _protocol(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer batches and drivers.")] = False,
) -> None:
    """Search how batches are committed for lost and repeated results, through kills and power cuts."""
    if not protocol.protocol(quick, Console()):
        raise typer.Exit(1)


@app.command("fuzz")
def _fuzz(
    quick: Annotated[bool, typer.Option("--quick", help="A few hundred of each.")] = False,
    seed: Annotated[int, typer.Option(help="The seed of a run to repeat.")] = 0,
    count: Annotated[int | None, typer.Option(min=1, help="How many to draw, with --only.")] = None,
    only: Annotated[str | None, typer.Option(help="expressions, joins or inputs.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Draw random inputs, expressions and joins: no odd errors, and always the answers of Spark itself."""
    if not fuzz.fuzz(quick, seed, count, only, json_file, Console()):
        raise typer.Exit(1)


@app.command("functions")
def _functions(
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("docs/expressions.md"),
) -> None:
    """Try every function of Spark in a join, and write which of them work where."""
    fuzz.functions(out)
