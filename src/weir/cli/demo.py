"""`weir demo`: join generated trades of three stock exchanges, on Spark or in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column, Table

import weir
from weir.cli import watch
from weir.cli.run import require_spark
from weir.errors import QueryError
from weir.local.query import LocalQuery

EXCHANGES = ("nyc", "tokyo", "london")
_TIME = pa.timestamp("us", tz="UTC")
TRADES = pa.schema({"ts": _TIME, "symbol": pa.string(), "price": pa.float64(), "volume": pa.int64()})
COLUMNS = "ts TIMESTAMP, symbol STRING, price DOUBLE, volume BIGINT"  # TRADES as Spark DDL

_SECOND = 1_000_000
_OPENING = 1_704_205_800 * _SECOND  # 2024-01-02 14:30 UTC
_ROWS_PER_SYMBOL = 2  # per second at any rate, so that results grow with the rate and not with its cube
_DISORDER_SECONDS = 2.0
_DELAYED_SHARE = 0.01
_DELAY_SECONDS = (10.0, 40.0)

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
class Market:
    """The trades of all exchanges; a batch is a pure function of the seed, the exchange and its number.

    >>> market = Market(seed=1, rows_per_second=100)
    >>> market.batch("nyc", 0).num_rows
    100
    >>> market.batch("nyc", 3).equals(market.batch("nyc", 3))
    True
    """

    seed: int = 7
    rows_per_second: int = 200

    def __post_init__(self) -> None:
        if self.rows_per_second < 1:
            raise QueryError(f"a market needs at least one row per second; got {self.rows_per_second}")

    @property
    def symbols(self) -> int:
        """The number of stocks traded."""
        return max(1, self.rows_per_second // _ROWS_PER_SYMBOL)

    def batch(self, exchange: str, number: int) -> pa.Table:
        """Generate one second of arriving trades: up to two seconds old, one in a hundred far older."""
        rng = np.random.default_rng([self.seed, EXCHANGES.index(exchange), number])
        rows = self.rows_per_second
        stock = rng.integers(self.symbols, size=rows)
        delayed = rng.random(rows) < _DELAYED_SHARE
        age = np.where(delayed, rng.uniform(*_DELAY_SECONDS, rows), rng.uniform(0, _DISORDER_SECONDS, rows))
        seconds = number + np.sort(rng.random(rows)) - age
        price = self._fair_price(stock, seconds) * (1 + rng.normal(0, 0.005, rows))
        return pa.table(
            {
                "ts": pa.array((_OPENING + seconds * _SECOND).astype(np.int64)).cast(_TIME),
                "symbol": [f"SYM{number:03}" for number in stock],
                "price": np.round(price, 2),
                "volume": rng.integers(1, 500, rows) * 10,
            },
            schema=TRADES,
        )

    def write(self, folder: Path, batches: int) -> None:
        """Write the first batches as Parquet files, a folder per exchange, with file times in batch order."""
        for exchange in EXCHANGES:
            (folder / exchange).mkdir()
            for number in range(batches):
                file = folder / exchange / f"{number:05}.parquet"
                pq.write_table(self.batch(exchange, number), file)
                os.utime(file, times=(_OPENING // _SECOND + number,) * 2)

    def _fair_price(self, stock: NDArray[np.int64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        rng = np.random.default_rng(self.seed)
        level = np.exp(rng.uniform(np.log(20), np.log(200), self.symbols))
        phase = rng.uniform(0, 2 * np.pi, self.symbols)
        price: NDArray[np.float64] = level[stock] * (1 + 0.02 * np.sin(seconds / 10 + phase[stock]))
        return price


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

    def add(self, figures: watch.BatchFigures) -> Totals:
        """Add a batch; the best results stay as they are."""
        return Totals(
            batches=self.batches + 1,
            rows=self.rows + figures.rows,
            results=self.results + (figures.results or 0),
            state=figures.state_rows,
            late=self.late + figures.late,
            seconds=self.seconds + figures.seconds,
            best=self.best,
        )

    def format_line(self) -> str:
        """Format the totals as a line."""
        rows, state = f"{self.rows_per_second:>7,.0f} rows/s", f"{self.state:>6,} state"
        return f"{rows} {self.results:>8,} results {state} {self.late:>4,} late"


_Batches = Annotated[int, typer.Option(min=1, help="Micro-batches of one second of trades each.")]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of the generated trades.")]
_Rate = Annotated[int, typer.Option(min=1, help="Trades per second on each exchange.")]
_Local = Annotated[bool, typer.Option("--local", help="Run in this process, without Spark.")]


def run_demo(
    batches: _Batches = 12, seed: _Seed = 7, rows_per_second: _Rate = 200, local: _Local = False
) -> None:
    """Join generated trades of three stock exchanges and show the progress."""
    console = Console()
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
        candidates = [results] if totals.best is None else [totals.best, results]
        milliseconds = 1000 * query.last_report.seconds if query.last_report else 0.0
        progress = dict(query.lastProgress or {}, durationMs={"triggerExecution": milliseconds})
        totals = replace(totals.add(watch.BatchFigures.of(progress)), best=choose_best(candidates))
        show(totals)
    return totals


def _run_on_spark(market: Market, batches: int, show: Callable[[Totals], None]) -> Totals:
    # A second of trades is a file per exchange, and each micro-batch reads the next file of each.
    require_spark(", or run it in this process: weir demo --local")
    from weir.spark.script import open_stream, session, stop

    with TemporaryDirectory(prefix="weir-demo-", ignore_cleanup_errors=True) as home:
        market.write(Path(home), batches)
        with session(_SHORT_RUN) as spark, watch.catch_stop_signals() as stopping:
            one_file = {"maxFilesPerTrigger": "1"}
            streams = {
                name: open_stream(spark, "parquet", COLUMNS, {"path": f"{home}/{name}", **one_file})
                for name in EXCHANGES
            }
            writer = join_exchanges(**streams).writeStream.format("parquet").trigger(availableNow=True)
            query = writer.option("checkpointLocation", f"{home}/checkpoint").start(f"{home}/results")
            totals = Totals()
            for progress in watch.follow_batches(query, stopping):
                totals = totals.add(watch.BatchFigures.of(progress))
                show(totals)
            stop(query)
        tables = [pq.read_table(file) for file in sorted(Path(home).glob("results/part-*.parquet"))]
        return replace(totals, best=choose_best(tables) if tables else None)


def choose_best(tables: Sequence[pa.Table], count: int = _TABLE_ROWS) -> pa.Table:
    """Choose the best result of each of the best stocks, best first."""
    results = pa.concat_tables(tables)
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
    left, line = TextColumn("batches left {task.fields[left]:>3}"), TextColumn("{task.description}")
    with Progress(left, BarColumn(8), line, console=console) as progress:
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
    columns = [Column(n, justify="left" if n in ("symbol", "bought") else "right") for n in best.column_names]
    table = Table(*columns, title="The best trade of the five best stocks")
    for row in best.to_pylist():
        prices = (f"{row[exchange]:.2f}" for exchange in EXCHANGES)
        table.add_row(row["symbol"], f"{row['bought']:%H:%M:%S.%f}"[:-4], *prices, f"{row['gain']:.2%}")
    return table
