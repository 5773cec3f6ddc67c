"""The query that is attacked: three streams of files, joined on Spark into files; DuckDB has the answer."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

import weir
from weir.errors import QueryError
from weir.options import Durability
from weir.plan.tree import join as tree
from weir_lab.bench.feed import STREAMS, Feed, streams
from weir_lab.bench.processes import kill, list_descendants, list_python_workers

Kind = Literal["mjoin", "tree", "changing plans"]
# "logged" is parquet whose files count by a log, as for `readBack`.
Format = Literal["parquet", "json", "logged"]
# A task may meet a worker that has just been ended, and is then tried again.
MASTER = "local[2,4]"
KINDS: tuple[Kind, ...] = ("mjoin", "tree", "changing plans")
FORMATS: tuple[Format, ...] = ("parquet", "json", "logged")

_FEED = Feed(rows_per_second=20, keys=12)
# Rows that a feed delays come one second later.
_LATE = "2 seconds"
_WINDOW_SECONDS = 3
_ON = "a.k = b.k AND b.k = c.k"
_SELECT = "a.k, a.x AS ax, b.x AS bx, c.x AS cx"
_PLANS = (
    tree(tree("a", "b"), "c"),
    tree("c", "b", "a"),
    tree(tree("b", "c"), "a"),
    tree("a", "b", "c"),
)
_REPLAN_SECONDS = 0.4
_LOG = "_spark_metadata"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows compared as multisets: how many are expected, missing, there too often, or no results at all."""

    results: int
    lost: int
    twice: int
    wrong: int

    @property
    def is_exact(self) -> bool:
        """True if every result is there once and nothing else, and there were results."""
        return bool(self.results) and not (self.lost or self.twice or self.wrong)

    def describe(self) -> str:
        """The comparison in a few words."""
        return f"{self.results:,} results, {self.lost:,} lost, {self.twice:,} twice, {self.wrong:,} wrong"


def compare(expected: pa.Table, written: pa.Table) -> Comparison:
    """Compare rows as multisets.

    >>> compare(pa.table({"k": [1, 2, 2]}), pa.table({"k": [2, 2, 2, 9]}))
    Comparison(results=3, lost=1, twice=1, wrong=1)
    """
    wanted, seen = _count(expected), _count(written)
    extra = seen - wanted
    wrong = sum(times for row, times in extra.items() if row not in wanted)
    return Comparison(wanted.total(), (wanted - seen).total(), extra.total() - wrong, wrong)


def _count(rows: pa.Table) -> Counter[Sequence[object]]:
    names = sorted(rows.column_names)
    return Counter(zip(*(rows[name].to_pylist() for name in names), strict=True))


@dataclass(slots=True)
class Target:
    """A query with its rows, checkpoint and output in one folder, one file of each stream a batch."""

    folder: Path
    kind: Kind = "mjoin"
    format: Format = "parquet"
    durability: Durability = "power"
    rows: Feed = _FEED
    seconds: int = field(default=0, init=False)

    @property
    def checkpoint(self) -> Path:
        """Where Spark's logs and weir's state are."""
        return self.folder / "checkpoint"

    @property
    def out(self) -> Path:
        """Where the results go."""
        return self.folder / "out"

    def feed(self, seconds: int) -> None:
        """Let more rows come, so many seconds of them."""
        self.rows.write(self.folder / "in", range(self.seconds, self.seconds + seconds))
        self.seconds += seconds

    def start(self, spark: Any, once: bool = True) -> Any:
        """Start the query, over the rows that are there or, if not `once`, also over all that will come."""
        options: dict[str, Any] = {}
        if self.kind == "tree":
            options["plan"] = _PLANS[0]
        elif self.kind == "changing plans":
            # So large for so few rows that nothing is skipped: only the plan changes.
            options |= {"budget": weir.Budget(memory="2g"), "adapt": True}
        joined: Any = weir.join(
            streams=streams(spark, self.folder / "in", files_per_trigger=1),
            on=_ON,
            within=f"{_WINDOW_SECONDS} seconds",
            late=_LATE,
            select=_SELECT,
            partitions=2,
            durability=self.durability,
            **options,
        )
        if self.format == "logged":
            (self.out / _LOG).mkdir(parents=True, exist_ok=True)
        writer = joined.writeStream.format(self._file_format)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        trigger: dict[str, Any] = {"availableNow": True} if once else {"processingTime": "0 seconds"}
        return writer.trigger(**trigger).start(str(self.out))

    def attend(self, query: Any) -> None:
        """Wait for the end of the query, whose error is raised; meanwhile change its plan, if it is so."""
        try:
            for turn in count():
                if query.awaitTermination(_REPLAN_SECONDS):
                    return
                if self.kind == "changing plans":
                    with suppress(QueryError):  # it has just ended
                        query.replan(_PLANS[turn % len(_PLANS)], reason=f"turn {turn}")
        finally:
            query.stop()

    def run(self, spark: Any) -> None:
        """Run the query to its end, with workers that know nothing of an earlier run; raise its error."""
        end_workers()
        self.attend(self.start(spark))

    def compare(self) -> Comparison:
        """Hold what a reader of the output sees against DuckDB's answer."""
        return compare(self._answer(), self._read())

    def _answer(self) -> pa.Table:
        near = " AND ".join(
            f"abs(epoch_us({x}.ts) - epoch_us({y}.ts)) < {_WINDOW_SECONDS * 1_000_000}"
            for x, y in ("ab", "bc", "ac")
        )
        with duckdb.connect(config={"threads": 1}) as database:
            for name in STREAMS:
                database.register(name, ds.dataset(self.folder / "in" / name, format="parquet").to_table())
            return database.sql(f"SELECT {_SELECT} FROM a, b, c WHERE {_ON} AND {near}").to_arrow_table()

    def _read(self) -> pa.Table:
        schema = pa.schema({"k": pa.int64(), "ax": pa.float64(), "bx": pa.float64(), "cx": pa.float64()})
        files = self._list_logged() if self.format == "logged" else sorted(map(str, self.out.glob("part-*")))
        # One by one: a log may name a file twice.
        tables = [ds.dataset(file, schema=schema, format=self._file_format).to_table() for file in files]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    @property
    def _file_format(self) -> str:
        return "parquet" if self.format == "logged" else self.format

    def _list_logged(self) -> list[str]:
        """The files that the log names: those of its newest compact entry, and of all entries after it."""
        entries = list((self.out / _LOG).glob("[0-9]*"))
        compact = max((int(path.stem) for path in entries if path.suffix), default=-1)
        counted = [path for path in entries if path.suffix or int(path.stem) > compact]
        counted = [path for path in counted if int(path.stem) >= compact]
        lines = [line for path in counted for line in path.read_text().splitlines()[1:]]
        return [unquote(json.loads(line)["path"]).removeprefix("file://") for line in lines]


def end_workers() -> None:
    """End the idle Python workers of the Spark of this process, which remember files as they were."""
    for worker in list_python_workers(list_descendants(os.getpid())):
        kill(worker)


def run_safely(run: Callable[[], None]) -> Exception | None:
    """Run something that may fail; return how."""
    try:
        run()
    except Exception as error:  # whatever it is, it is what the attack looks at
        return error
    return None


def is_clear(error: Exception) -> bool:
    """True for an error that a user can act on: one sentence of weir's own."""
    return isinstance(error, QueryError) and "\n" not in str(error)
