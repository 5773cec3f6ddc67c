"""`weir demo`: join three stock exchanges batch by batch, on Spark or in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

import weir
from weir.cli import watch
from weir.cli.run import require_spark
from weir.demo import COLUMNS, EXCHANGES, TRADES, Market
from weir.local.query import LocalQuery

CONDITION = """nyc.symbol = tokyo.symbol AND tokyo.symbol = london.symbol
    AND tokyo.price > nyc.price * 1.01
    AND abs(london.price - tokyo.price) <= 0.25"""

SELECT = """nyc.symbol AS symbol, nyc.ts AS bought, nyc.price AS nyc, tokyo.price AS tokyo,
    london.price AS london, tokyo.price / nyc.price - 1 AS gain"""

INTRODUCTION = """Bought in New York and sold in Tokyo for over 1 % more, with London within
0.25 of Tokyo, all three trades within 5 seconds:
"""

_TABLE_ROWS = 5
# Without Java's second compiler so short a run takes half the time.
_SHORT_RUN = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals of the batches so far; `state` is the current number of rows in state."""

    batches: int = 0
    rows: int = 0
    results: int = 0
    state: int = 0
    late: int = 0
    seconds: float = 0.0
    best: pa.Table | None = field(default=None, repr=False)

    @property
    def rows_per_second(self) -> float:
        """Input rows per second of processing."""
        return self.rows / self.seconds if self.seconds else 0.0

    def format_line(self) -> str:
        """Format the totals as a line."""
        return (
            f"{self.rows_per_second:>7,.0f} rows/s {self.results:>8,} results "
            f"{self.state:>6,} state {self.late:>4,} late"
        )


def run_demo(batches: int, seed: int, rows_per_second: int, local: bool, console: Console) -> None:
    """Join the trades of a generated market, and show the progress and the best results."""
    console.print(INTRODUCTION, highlight=False, soft_wrap=True)
    run = _run_locally if local else _run_on_spark
    with _display_progress(batches, console) as show:
        totals = run(Market(seed, rows_per_second), batches, show)
    _print_summary(totals, console)


def join_exchanges(**streams: Any) -> Any:
    """Build the demo's join over DataFrames, tables or schemas of the three exchanges."""
    return weir.join(on=CONDITION, late="2 seconds", within="5 seconds", select=SELECT, **streams)


def _run_locally(market: Market, batches: int, show: Callable[[Totals], None]) -> Totals:
    query: LocalQuery = join_exchanges(**dict.fromkeys(EXCHANGES, TRADES)).start()
    totals = Totals()
    for number in range(batches):
        results = query.process({exchange: market.batch(exchange, number) for exchange in EXCHANGES})
        best = results if totals.best is None else pa.concat_tables([totals.best, results])
        milliseconds = 1000 * query.stats.seconds if query.stats else 0.0
        progress = dict(query.lastProgress or {}, durationMs={"triggerExecution": milliseconds})
        totals = replace(_add_batch(totals, watch.BatchFigures.of(progress)), best=choose_best(best))
        show(totals)
    return totals


def _run_on_spark(market: Market, batches: int, show: Callable[[Totals], None]) -> Totals:
    # A second of trades is a file per exchange, and each micro-batch reads the next file of each.
    require_spark(", or run it in this process: weir demo --local")
    from weir.spark.script import open_stream, session, stop

    with TemporaryDirectory(prefix="weir-demo-", ignore_cleanup_errors=True) as home:
        market.write(Path(home), batches)
        with session(_SHORT_RUN) as spark, watch.catch_stop_signals() as stopping:
            streams = {
                name: open_stream(
                    spark, "parquet", COLUMNS, {"path": f"{home}/{name}", "maxFilesPerTrigger": "1"}
                )
                for name in EXCHANGES
            }
            writer = join_exchanges(**streams).writeStream.format("parquet").trigger(availableNow=True)
            query = writer.option("checkpointLocation", f"{home}/checkpoint").start(f"{home}/results")
            totals = Totals()
            for progress in watch.follow_batches(query, stopping):
                totals = _add_batch(totals, watch.BatchFigures.of(progress))
                show(totals)
            stop(query)
        return _read_best(totals, Path(home) / "results")


def _add_batch(totals: Totals, figures: watch.BatchFigures) -> Totals:
    return Totals(
        batches=totals.batches + 1,
        rows=totals.rows + figures.rows,
        results=totals.results + (figures.results or 0),
        state=figures.state_rows,
        late=totals.late + figures.late,
        seconds=totals.seconds + figures.seconds,
    )


def _read_best(totals: Totals, folder: Path) -> Totals:
    """Read the best results from the sink's files."""
    results = [pq.read_table(file) for file in sorted(folder.glob("part-*.parquet"))]
    return replace(totals, best=choose_best(pa.concat_tables(results)) if results else None)


def choose_best(results: pa.Table, count: int = _TABLE_ROWS) -> pa.Table:
    """Choose the best result of each of the best stocks, best first."""
    names = [name for name in results.column_names if name != "symbol"]
    order = [("gain", "descending"), ("symbol", "ascending"), ("bought", "ascending")]
    groups = results.sort_by(order).group_by("symbol", use_threads=False)
    firsts = groups.aggregate([(name, "first") for name in names]).rename_columns(["symbol", *names])
    return firsts.sort_by(order).slice(0, count)  # Arrow does not promise an order of groups


@contextmanager
def _display_progress(batches: int, console: Console) -> Iterator[Callable[[Totals], None]]:
    if not console.is_terminal:
        yield lambda totals: console.print(
            f"batches left {batches - totals.batches:>3} {totals.format_line()}", soft_wrap=True
        )
        return
    columns = (
        TextColumn("batches left {task.fields[left]:>3}"),
        BarColumn(8),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(Totals().format_line(), total=batches, left=batches)
        yield lambda totals: progress.update(
            task, completed=totals.batches, left=batches - totals.batches, description=totals.format_line()
        )


def _print_summary(totals: Totals, console: Console) -> None:
    if totals.best is not None and totals.best.num_rows:
        console.print(_build_table(totals.best))
    console.print(
        f"{totals.rows:,} rows in, {totals.results:,} results in {totals.batches} batches and "
        f"{totals.seconds:.2f} s ({totals.rows_per_second:,.0f} rows/s); {totals.late:,} late rows dropped, "
        f"{totals.state:,} in state.",
        highlight=False,
        soft_wrap=True,
    )


def _build_table(best: pa.Table) -> Table:
    table = Table(title="The best trade of the five best stocks")
    for name in best.column_names:
        table.add_column(name, justify="left" if name in ("symbol", "bought") else "right")
    for row in best.to_pylist():
        prices = (f"{row[exchange]:.2f}" for exchange in EXCHANGES)
        table.add_row(row["symbol"], f"{row['bought']:%H:%M:%S.%f}"[:-4], *prices, f"{row['gain']:.2%}")
    return table
