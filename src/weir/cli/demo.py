"""`weir demo`: three exchanges joined batch by batch, with a count-down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

import weir
from weir.demo import EXCHANGES, TRADES, Market

QUESTION = """nyc.symbol = tokyo.symbol AND tokyo.symbol = london.symbol
    AND tokyo.price > nyc.price * 1.01
    AND abs(london.price - tokyo.price) <= 0.25"""

ANSWER = """nyc.symbol AS symbol, nyc.ts AS bought, nyc.price AS nyc, tokyo.price AS tokyo,
    london.price AS london, tokyo.price / nyc.price - 1 AS gain"""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Tally:
    """What the batches so far have brought."""

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
            f"{self.rows_per_second:>9,.0f} rows in/s  {self.results:>9,} results  "
            f"{self.state:>7,} rows in state  {self.late:>5,} late"
        )


def play(batches: int, seed: int, rows_per_second: int, console: Console) -> None:
    """Join a seeded market and show what comes out."""
    console.print("Buy in New York; sell at least 1 % dearer in Tokyo, with London within 0.25 of Tokyo,")
    console.print("all three trades within 5 seconds of each other:\n")
    tally = Tally()
    with _display(batches, console) as show:
        for left, tally in _run(Market(seed, rows_per_second), batches):
            show(left, tally)
    _summary(tally, batches, console)


def question(**streams: pa.Table | pa.Schema) -> weir.LocalJoin:
    """The join of the demo over tables or schemas of the three exchanges."""
    return weir.join(on=QUESTION, late="2 seconds", within="5 seconds", select=ANSWER, **streams)


def _run(market: Market, batches: int) -> Iterator[tuple[int, Tally]]:
    query = question(**dict.fromkeys(EXCHANGES, TRADES)).start()
    tally = Tally()
    for number in range(batches):
        deltas = {exchange: market.batch(exchange, number) for exchange in EXCHANGES}
        begin = perf_counter()
        results = query.process(**deltas)
        tally = _add(tally, results, query.lastProgress, perf_counter() - begin)
        yield batches - number - 1, tally


def _add(tally: Tally, results: pa.Table, progress: dict[str, Any], seconds: float) -> Tally:
    return Tally(
        rows=tally.rows + progress["numInputRows"],
        results=tally.results + results.num_rows,
        state=progress["numRowsTotal"],
        late=tally.late + progress["numRowsDroppedByWatermark"],
        seconds=tally.seconds + seconds,
        best=_best_of_each_symbol(results if tally.best is None else pa.concat_tables([tally.best, results])),
    )


def _best_of_each_symbol(results: pa.Table) -> pa.Table:
    names = [name for name in results.column_names if name != "symbol"]
    ordered = results.sort_by([("gain", "descending"), ("symbol", "ascending"), ("bought", "ascending")])
    firsts = ordered.group_by("symbol", use_threads=False).aggregate([(name, "first") for name in names])
    return firsts.slice(0, _SHOWN).rename_columns(["symbol", *names])


@contextmanager
def _display(batches: int, console: Console) -> Iterator[Callable[[int, Tally], None]]:
    if not console.is_terminal:
        yield lambda left, tally: console.print(f"{left:>3} batches to go {tally.line()}", soft_wrap=True)
        return
    columns = (
        TextColumn("{task.fields[left]:>3} batches to go"),
        BarColumn(20),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(Tally().line(), total=batches, left=batches)
        yield lambda left, tally: progress.update(task, advance=1, left=left, description=tally.line())


def _summary(tally: Tally, batches: int, console: Console) -> None:
    if tally.best is not None and tally.best.num_rows:
        console.print(_table(tally.best))
    console.print(
        f"{tally.rows:,} rows in, {tally.results:,} results in {batches} batches and {tally.seconds:.2f} s "
        f"({tally.rows_per_second:,.0f} rows/s); {tally.late:,} late rows dropped, {tally.state:,} in state.",
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
