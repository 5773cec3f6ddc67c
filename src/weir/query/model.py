"""What is asked: streams, windows, predicate, output, freshness and budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.errors import QueryError, strict, unknown
from weir.expr.nodes import Expr, streams_of
from weir.expr.types import spark_name
from weir.query.bounds import Bounds
from weir.query.predicate import Predicate
from weir.query.windows import RowWindow, TimeWindow, Window, check_length
from weir.units import show_interval, show_size, size

__all__ = [
    "MOST_BASIC_WINDOWS",
    "MOST_STREAMS",
    "Budget",
    "Output",
    "Query",
    "RowWindow",
    "Stream",
    "TimeWindow",
    "Window",
    "not_a_budget",
]

MOST_STREAMS = 20
MOST_BASIC_WINDOWS = 1000


@dataclass(frozen=True, slots=True)
class Stream:
    """A named input, the column that says when its rows happened, and how late they may come (µs)."""

    name: str
    schema: pa.Schema
    time: str
    late: int = 0

    def __post_init__(self) -> None:
        if not self.name:
            raise QueryError("a stream needs a name")
        _refuse_characters(self.name)
        _refuse_duplicates(f"column of stream '{self.name}'", self.schema.names)
        if self.time not in self.schema.names:
            raise unknown(
                "column", self.time, self.schema.names, where=f" as the time of stream '{self.name}'"
            )
        kind = self.schema.field(self.time).type
        if not pa.types.is_timestamp(kind):
            raise QueryError(
                f"the time of stream '{self.name}' must be a timestamp; '{self.time}' is {spark_name(kind)}"
            )
        if self.late < 0:
            raise QueryError(
                f"lateness cannot be negative; stream '{self.name}' has {show_interval(self.late)}"
            )
        check_length(self.late, f"the lateness of stream '{self.name}', {show_interval(self.late)},")


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result."""

    name: str
    expr: Expr


@strict
@dataclass(frozen=True, slots=True)
class Budget:
    """The share of the cores a query may use, and the bytes its state may take; None is no limit.

    >>> Budget(cpu=0.8, memory="2g")
    Budget(cpu=0.8, memory=2147483648)
    """

    cpu: float | None = None
    memory: int | str | None = None

    def __post_init__(self) -> None:
        if self.cpu is not None:
            object.__setattr__(self, "cpu", _share(self.cpu))
        if self.memory is not None:
            object.__setattr__(self, "memory", _size(self.memory))

    @property
    def bytes(self) -> int | None:
        """The memory in bytes."""
        return None if self.memory is None else size(self.memory)

    def __str__(self) -> str:
        limits = [f"cpu {self.cpu}"] if self.cpu is not None else []
        limits += [f"memory {show_size(self.bytes)}"] if self.bytes is not None else []
        return ", ".join(limits) or "no limit"


def not_a_budget(given: object) -> QueryError:
    """The error for what is no budget; a key of a mapping that none has is named."""
    for key in given if isinstance(given, Mapping) else ():
        if key not in ("cpu", "memory"):
            return unknown("key", str(key), ("cpu", "memory"), where=" in a budget")
    return QueryError(f"a budget is written weir.Budget(cpu=0.8, memory='2g'); got {given!r}")


def _share(given: object) -> float:
    number = int | float | np.integer | np.floating
    if isinstance(given, bool) or not isinstance(given, number) or not 0 < given <= 1:
        raise QueryError(
            f"a budget's cpu is a share of the cores, a number above 0 and at most 1, like 0.8; got {given!r}"
        )
    return float(given)


def _size(given: int | str) -> int:
    try:
        found = size(given)
    except QueryError as error:
        raise QueryError(f"a budget's memory: {error}") from None
    if found <= 0:
        raise QueryError(f"a budget's memory is a size above zero, like '2g'; got {given!r}")
    return found


@dataclass(frozen=True, slots=True)
class Query:
    """A join as asked; `windows` and `fresh` stand in the order of `streams`.

    Freshness is in microseconds beside a time window and in rows beside a row window. `basic` is the length
    of basic windows in microseconds, by which windows are harvested; None leaves it open.
    """

    streams: tuple[Stream, ...]
    windows: tuple[Window | None, ...]
    predicate: Predicate
    select: tuple[Output, ...]
    fresh: tuple[int | None, ...]
    budget: Budget | None
    bounds: Bounds
    basic: int | None = None

    def __post_init__(self) -> None:
        check_names(self.names)
        if not len(self.windows) == len(self.fresh) == len(self.streams) or self.bounds.names != self.names:
            raise ValueError("windows, freshness and bounds must stand in the order of the streams")
        if not self.select:
            raise QueryError("the result has no column; name at least one to select")
        _refuse_duplicates("output column", [output.name for output in self.select], "; rename one with AS")
        read = self.predicate.streams.union(*(streams_of(output.expr) for output in self.select))
        for name in sorted(read):
            self.stream(name)
        for i, stream in enumerate(self.streams):
            self._check_freshness(i, stream.name)

        self._check_basic()

    @property
    def names(self) -> tuple[str, ...]:
        """The streams' names, in order."""
        return tuple(stream.name for stream in self.streams)

    @property
    def reach(self) -> int | None:
        """By how much (µs) rows to come can be later than one they join; None if a window counts rows."""
        kept = [self.bounds.retention(i) for i in range(len(self.names))]
        if any(isinstance(window, RowWindow) for window in self.windows) or None in kept:
            return None
        return max(one for one in kept if one is not None)

    def stream(self, name: str) -> Stream:
        """The stream of that name, in any case."""
        for stream in self.streams:
            if stream.name.lower() == name.lower():
                return stream
        raise unknown("stream", name, self.names)

    def _check_freshness(self, i: int, name: str) -> None:
        fresh, window = self.fresh[i], self.windows[i]
        if fresh is None:
            return
        if isinstance(window, RowWindow):
            least, shown = window.rows, str(fresh)
        else:
            least = window.microseconds if window else self.bounds.retention(i) or 0
            shown = show_interval(fresh)
        if fresh < least:
            kept = window or show_interval(least)
            raise QueryError(
                f"the freshness of stream '{name}' is {shown}, below its window of {kept}: "
                "rows that may still join would never be shown; make it at least as long as the window"
            )

    def _check_basic(self) -> None:
        """A window that is shorter than a basic window is one of them; the longest must be divided."""
        if self.basic is None:
            return
        if self.basic <= 0:
            raise QueryError(f"basic windows must be longer than nothing; got {show_interval(self.basic)}")
        kept = {name: self.bounds.retention(i) or 0 for i, name in enumerate(self.names)}
        longest = max(kept, key=lambda name: kept[name])
        window = kept[longest]
        if 0 < window < self.basic:
            raise QueryError(
                f"basic windows of {show_interval(self.basic)} do not fit into the longest window, "
                f"{show_interval(window)} of stream '{longest}'; make them shorter"
            )
        if window > MOST_BASIC_WINDOWS * self.basic:
            raise QueryError(
                f"basic windows of {show_interval(self.basic)} would divide the window of stream "
                f"'{longest}', {show_interval(window)}, into more than {MOST_BASIC_WINDOWS}; make them longer"
            )


def check_names(names: Iterable[str]) -> None:
    """Refuse fewer than two streams, too many, and names that differ at most in case."""
    listed = tuple(names)
    if not listed:
        raise QueryError("there is no stream to join; name at least two")
    if len(listed) == 1:
        raise QueryError(f"a join needs at least two streams; there is only '{listed[0]}'")
    if len(listed) > MOST_STREAMS:
        raise QueryError(f"a join takes at most {MOST_STREAMS} streams; there are {len(listed)}")
    _refuse_duplicates("stream", listed)


def _refuse_characters(name: str) -> None:
    """States and stored columns are named after streams: `a@time`, `a.price`, `(a b)`."""
    found = next((character for character in name if character in "@()." or character.isspace()), None)
    if found is not None:
        raise QueryError(
            f"a stream cannot be called {name!r}: it may hold letters, digits, underscores and most signs, "
            f"but not {found!r}, nor any other of '@', '.', '(', ')' and white space"
        )


def _refuse_duplicates(kind: str, names: Iterable[str], advice: str = "") -> None:
    listed = list(names)
    for lower, count in Counter(name.lower() for name in listed).items():
        if count > 1:
            twice = " and ".join(f"'{name}'" for name in listed if name.lower() == lower)
            raise QueryError(f"each {kind} needs a name of its own, whatever its case; got {twice}{advice}")
