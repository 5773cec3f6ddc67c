"""`weir demo`: three exchanges joined batch by batch, with a count-down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

import weir
from weir.demo import EXCHANGES, TRADES, Market
from weir.local import LocalJoin
from weir.stats import BatchStats

QUESTION = """nyc.symbol = tokyo.symbol AND tokyo.symbol = london.symbol
    AND tokyo.price > nyc.price * 1.01
    AND abs(london.price - tokyo.price) <= 0.25"""

ANSWER = """nyc.symbol AS symbol, nyc.ts AS bought, nyc.price AS nyc, tokyo.price AS tokyo,
    london.price AS london, tokyo.price / nyc.price - 1 AS gain"""

STORY = """Bought in New York and sold in Tokyo for over 1 % more, with London within
0.25 of Tokyo, all three trades within 5 seconds:
"""

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
            f"{self.rows_per_second:>7,.0f} rows/s {self.results:>8,} results "
            f"{self.state:>6,} state {self.late:>4,} late"
        )


def play(batches: int, seed: int, rows_per_second: int, console: Console) -> None:
    """Join a seeded market and show what comes out."""
    console.print(STORY, highlight=False, soft_wrap=True)
    tally = Tally()
    with _display(batches, console) as show:
        for left, tally in _run(Market(seed, rows_per_second), batches):
            show(left, tally)
    _summary(tally, batches, console)


def question(**streams: pa.Table | pa.Schema) -> LocalJoin:
    """The join of the demo over tables or schemas of the three exchanges."""
    asked = weir.join(on=QUESTION, late="2 seconds", within="5 seconds", select=ANSWER, **streams)
    assert isinstance(asked, LocalJoin)
    return asked


def _run(market: Market, batches: int) -> Iterator[tuple[int, Tally]]:
    query = question(**dict.fromkeys(EXCHANGES, TRADES)).start()
    tally = Tally()
    for number in range(batches):
        results = query.process({exchange: market.batch(exchange, number) for exchange in EXCHANGES})
        if query.stats is not None:
            tally = _add(tally, results, query.stats)
        yield batches - number - 1, tally


def _add(tally: Tally, results: pa.Table, stats: BatchStats) -> Tally:
    return Tally(
        rows=tally.rows + sum(stats.rows_in.values()),
        results=tally.results + stats.results,
        state=sum(size.rows for size in stats.state.values()),
        late=tally.late + sum(stats.late.values()),
        seconds=tally.seconds + stats.seconds,
        best=best_of_each_symbol(results if tally.best is None else pa.concat_tables([tally.best, results])),
    )


def best_of_each_symbol(results: pa.Table, shown: int = _SHOWN) -> pa.Table:
    """The best result of each of the best stocks, best first."""
    names = [name for name in results.column_names if name != "symbol"]
    order = [("gain", "descending"), ("symbol", "ascending"), ("bought", "ascending")]
    groups = results.sort_by(order).group_by("symbol", use_threads=False)
    firsts = groups.aggregate([(name, "first") for name in names]).rename_columns(["symbol", *names])
    return firsts.sort_by(order).slice(0, shown)  # groups come in no promised order


@contextmanager
def _display(batches: int, console: Console) -> Iterator[Callable[[int, Tally], None]]:
    if not console.is_terminal:
        yield lambda left, tally: console.print(f"batches left {left:>3} {tally.line()}", soft_wrap=True)
        return
    columns = (
        TextColumn("batches left {task.fields[left]:>3}"),
        BarColumn(8),
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
