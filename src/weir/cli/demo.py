"""`weir demo`: three exchanges joined batch by batch, with a count-down, on Spark or in this process."""

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
from weir.cli.run import need_spark
from weir.demo import COLUMNS, EXCHANGES, TRADES, Market
from weir.local.query import LocalQuery

QUESTION = """nyc.symbol = tokyo.symbol AND tokyo.symbol = london.symbol
    AND tokyo.price > nyc.price * 1.01
    AND abs(london.price - tokyo.price) <= 0.25"""

ANSWER = """nyc.symbol AS symbol, nyc.ts AS bought, nyc.price AS nyc, tokyo.price AS tokyo,
    london.price AS london, tokyo.price / nyc.price - 1 AS gain"""

STORY = """Bought in New York and sold in Tokyo for over 1 % more, with London within
0.25 of Tokyo, all three trades within 5 seconds:
"""

_SHOWN = 5
# So short a run is over before Java's second compiler would pay off; without it, it takes half the time.
_BRIEF = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


@dataclass(frozen=True, slots=True)
class Tally:
    """What the batches so far have brought."""

    batches: int = 0
    rows: int = 0
    results: int = 0
    state: int = 0
    late: int = 0
    seconds: float = 0.0
    best: pa.Table | None = field(default=None, repr=False)

    @property
    def rows_per_second(self) -> float:
        """Input rows joined per second of work."""
        return self.rows / self.seconds if self.seconds else 0.0

    def line(self) -> str:
        """The figures as one line of text."""
        return (
            f"{self.rows_per_second:>7,.0f} rows/s {self.results:>8,} results "
            f"{self.state:>6,} state {self.late:>4,} late"
        )


def play(batches: int, seed: int, rows_per_second: int, local: bool, console: Console) -> None:
    """Join a seeded market and show what comes out."""
    console.print(STORY, highlight=False, soft_wrap=True)
    run = _in_process if local else _on_spark
    with _display(batches, console) as show:
        tally = run(Market(seed, rows_per_second), batches, show)
    _summary(tally, console)


def question(**streams: Any) -> Any:
    """The join of the demo over DataFrames, tables or schemas of the three exchanges."""
    return weir.join(on=QUESTION, late="2 seconds", within="5 seconds", select=ANSWER, **streams)


def _in_process(market: Market, batches: int, show: Callable[[Tally], None]) -> Tally:
    query: LocalQuery = question(**dict.fromkeys(EXCHANGES, TRADES)).start()
    tally = Tally()
    for number in range(batches):
        results = query.process({exchange: market.batch(exchange, number) for exchange in EXCHANGES})
        stats = query.stats
        if stats is not None:
            tally = Tally(
                batches=tally.batches + 1,
                rows=tally.rows + sum(stats.counts.rows_in.values()),
                results=tally.results + stats.results,
                state=sum(size.rows for size in stats.state.values()),
                late=tally.late + sum(stats.counts.late.values()),
                seconds=tally.seconds + stats.seconds,
                best=_better(tally.best, results),
            )
        show(tally)
    return tally


def _on_spark(market: Market, batches: int, show: Callable[[Tally], None]) -> Tally:
    """A second of trades is a file per exchange, and each micro-batch takes the next file of every one."""
    need_spark(", or run it in this process: weir demo --local")
    from weir.spark.script import open_stream, session, stop

    with TemporaryDirectory(prefix="weir-demo-", ignore_cleanup_errors=True) as home:
        market.write(Path(home), batches)
        with session(_BRIEF) as spark, watch.stop_requests() as stopping:
            streams = {
                name: open_stream(
                    spark, "parquet", COLUMNS, {"path": f"{home}/{name}", "maxFilesPerTrigger": "1"}
                )
                for name in EXCHANGES
            }
            writer = question(**streams).writeStream.format("parquet").trigger(availableNow=True)
            query = writer.option("checkpointLocation", f"{home}/checkpoint").start(f"{home}/results")
            tally = Tally()
            for progress in watch.batches(query, stopping):
                tally = _joined(tally, watch.Figures.of(progress))
                show(tally)
            stop(query)
        return _with_results(tally, Path(home) / "results")


def _joined(tally: Tally, figures: watch.Figures) -> Tally:
    return Tally(
        batches=tally.batches + 1,
        rows=tally.rows + figures.rows,
        results=tally.results + (figures.results or 0),
        state=figures.state_rows,
        late=tally.late + figures.late,
        seconds=tally.seconds + figures.seconds,
    )


def _with_results(tally: Tally, folder: Path) -> Tally:
    """The best results, read from the sink's files as any reader would."""
    files = sorted(folder.glob("part-*.parquet"))
    found = [pq.read_table(file) for file in files]
    return replace(tally, best=best_of_each_symbol(pa.concat_tables(found)) if found else None)


def _better(best: pa.Table | None, results: pa.Table) -> pa.Table:
    return best_of_each_symbol(results if best is None else pa.concat_tables([best, results]))


def best_of_each_symbol(results: pa.Table, shown: int = _SHOWN) -> pa.Table:
    """The best result of each of the best stocks, best first."""
    names = [name for name in results.column_names if name != "symbol"]
    order = [("gain", "descending"), ("symbol", "ascending"), ("bought", "ascending")]
    groups = results.sort_by(order).group_by("symbol", use_threads=False)
    firsts = groups.aggregate([(name, "first") for name in names]).rename_columns(["symbol", *names])
    return firsts.sort_by(order).slice(0, shown)  # groups come in no promised order


@contextmanager
def _display(batches: int, console: Console) -> Iterator[Callable[[Tally], None]]:
    if not console.is_terminal:
        yield lambda tally: console.print(
            f"batches left {batches - tally.batches:>3} {tally.line()}", soft_wrap=True
        )
        return
    columns = (
        TextColumn("batches left {task.fields[left]:>3}"),
        BarColumn(8),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(Tally().line(), total=batches, left=batches)
        yield lambda tally: progress.update(
            task, completed=tally.batches, left=batches - tally.batches, description=tally.line()
        )


def _summary(tally: Tally, console: Console) -> None:
    if tally.best is not None and tally.best.num_rows:
        console.print(_table(tally.best))
    console.print(
        f"{tally.rows:,} rows in, {tally.results:,} results in {tally.batches} batches and "
        f"{tally.seconds:.2f} s ({tally.rows_per_second:,.0f} rows/s); {tally.late:,} late rows dropped, "
        f"{tally.state:,} in state.",
        highlight=False,
        soft_wrap=True,
    )


def _table(best: pa.Table) -> Table:
    table = Table(title="The best trade of the five best stocks")
    for name in best.column_names:
        table.add_column(name, justify="left" if name in ("symbol", "bought") else "right")
    for row in best.to_pylist():
        prices = (f"{row[exchange]:.2f}" for exchange in EXCHANGES)
        table.add_row(row["symbol"], f"{row['bought']:%H:%M:%S.%f}"[:-4], *prices, f"{row['gain']:.2%}")
    return table
