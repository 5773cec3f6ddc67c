"""The query model: streams, windows, predicate, output columns, freshness and budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from weir.errors import QueryError, locate_errors, match_name, refuse_unknown_keys, unknown_name
from weir.expr.nodes import Expr, streams_of
from weir.expr.session import Session
from weir.expr.types import spark_name
from weir.query.predicate import Predicate
from weir.query.windows import Bounds, RowWindow, Window, check_length
from weir.units import format_interval, format_size, parse_size

# What judges freshness: the newest event time before a batch, or the time of day when it is decided.
Clock: TypeAlias = Literal["event", "wall"]

MAX_STREAMS = 20
MAX_BASIC_WINDOWS = 1000


@dataclass(frozen=True, slots=True)
class Stream:
    """A named input, its event-time column, and how late its rows may arrive, in µs."""

    name: str
    schema: pa.Schema
    time: str
    late: int = 0

    @property
    def has_zone(self) -> bool:
        """True if event times are moments, False if they are local times of some zone."""
        return self.schema.field(self.time).type.tz is not None

    def __post_init__(self) -> None:
        if not self.name:
            raise QueryError("a stream needs a name")
        _refuse_characters(self.name)
        _refuse_duplicates(f"column of stream '{self.name}'", self.schema.names)
        time, late = f"the time of stream '{self.name}'", format_interval(self.late)
        if self.time not in self.schema.names:
            raise unknown_name("column", self.time, self.schema.names, where=f" as {time}")
        kind = self.schema.field(self.time).type
        if not pa.types.is_timestamp(kind):
            raise QueryError(f"{time} must be a timestamp; '{self.time}' is {spark_name(kind)}")
        if self.late < 0:
            raise QueryError(f"lateness cannot be negative; stream '{self.name}' has {late}")
        check_length(self.late, f"the lateness of stream '{self.name}', {late},")


@dataclass(frozen=True, slots=True)
class Output:
    """An output column."""

    name: str
    expr: Expr


@refuse_unknown_keys
@dataclass(frozen=True, slots=True)
class Budget:
    """The share of the cores that a query may use, and the bytes of its state; None is no limit.

    >>> Budget(cpu=0.8, memory="2g")
    Budget(cpu=0.8, memory=2147483648)
    """

    cpu: float | None = None
    memory: int | str | None = None

    def __post_init__(self) -> None:
        if self.cpu is not None:
            object.__setattr__(self, "cpu", _check_share(self.cpu))
        if self.memory is not None:
            object.__setattr__(self, "memory", _check_size(self.memory))

    @property
    def bytes(self) -> int | None:
        """Memory in bytes."""
        return None if self.memory is None else parse_size(self.memory)

    def __str__(self) -> str:
        limits = [f"cpu {self.cpu}"] if self.cpu is not None else []
        limits += [f"memory {format_size(self.bytes)}"] if self.bytes is not None else []
        return ", ".join(limits) or "no limit"


def wrong_budget(given: object) -> QueryError:
    """Return the error for a value that is not a budget; for a mapping, it names the unknown key."""
    for key in given if isinstance(given, Mapping) else ():
        if key not in ("cpu", "memory"):
            return unknown_name("key", str(key), ("cpu", "memory"), where=" in a budget")
    return QueryError(f"a budget is written weir.Budget(cpu=0.8, memory='2g'); got {given!r}")


def _check_share(given: object) -> float:
    number = int | float | np.integer | np.floating
    if isinstance(given, bool) or not isinstance(given, number) or not 0 < given <= 1:
        raise QueryError(
            f"a budget's cpu is a share of the cores, a number above 0 and at most 1, like 0.8; got {given!r}"
        )
    return float(given)


def _check_size(given: int | str) -> int:
    with locate_errors("a budget's memory: "):
        size = parse_size(given)
    if size <= 0:
        raise QueryError(f"a budget's memory is a size above zero, like '2g'; got {given!r}")
    return size


@dataclass(frozen=True, slots=True)
class Query:
    """A join query; `windows` and `fresh` are in the order of `streams`.

    Freshness is in microseconds for a time window and in rows for a row window. `basic` is the length of the
    basic windows by which windows are harvested, in microseconds; None lets the planner choose. The `session`
    is the one in which expressions were bound. `clock` judges freshness in time.
    """

    streams: tuple[Stream, ...]
    windows: tuple[Window | None, ...]
    predicate: Predicate
    select: tuple[Output, ...]
    fresh: tuple[int | None, ...]
    budget: Budget | None
    bounds: Bounds
    basic: int | None = None
    session: Session = field(default_factory=Session)
    clock: Clock = "event"

    def __post_init__(self) -> None:
        check_names(self.names)
        if not len(self.windows) == len(self.fresh) == len(self.streams) or self.bounds.names != self.names:
            raise ValueError("windows, freshness and bounds must be in the order of the streams")
        if not self.select:
            raise QueryError("the result has no column; name at least one to select")
        _refuse_duplicates("output column", [output.name for output in self.select], "; rename one with AS")
        read = self.predicate.streams.union(*(streams_of(output.expr) for output in self.select))
        for name in sorted(read):
            self.stream(name)
        for i, stream in enumerate(self.streams):
            self._check_freshness(i, stream.name)
        if self.clock == "wall" and self.longest_freshness is None:
            raise QueryError(
                "clock='wall' judges freshness in time, and no stream has one; ask for it, like "
                "fresh='1 hour', or leave clock= out"
            )
        self._check_basic()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams, in order."""
        return tuple(stream.name for stream in self.streams)

    @property
    def reach(self) -> int | None:
        """The longest retention of a stream in µs; None if a window counts rows."""
        if any(isinstance(window, RowWindow) for window in self.windows):
            return None
        retentions = [self.bounds.retention(i) for i in range(len(self.names))]
        return None if None in retentions else max(length for length in retentions if length is not None)

    @property
    def longest_freshness(self) -> int | None:
        """The longest freshness in time (µs); None if no stream has one."""
        in_time = zip(self.windows, self.fresh, strict=True)
        return max((f for w, f in in_time if f is not None and not isinstance(w, RowWindow)), default=None)

    def stream(self, name: str) -> Stream:
        """Return the stream of that name, ignoring case."""
        return self.streams[self.names.index(match_name("stream", name, self.names))]

    def reorder(self, names: Sequence[str]) -> Query:
        """Return the same query with its streams in another order."""
        order = [self.names.index(name) for name in names]
        upper = tuple(tuple(self.bounds.upper[i][j] for j in order) for i in order)
        return replace(
            self,
            streams=tuple(self.streams[i] for i in order),
            windows=tuple(self.windows[i] for i in order),
            fresh=tuple(self.fresh[i] for i in order),
            bounds=Bounds(tuple(names), upper),
        )

    def _check_freshness(self, i: int, name: str) -> None:
        fresh, window = self.fresh[i], self.windows[i]
        if isinstance(window, RowWindow):
            minimum, given = window.rows, str(fresh)
        else:
            minimum = window.microseconds if window else self.bounds.retention(i) or 0
            given = format_interval(fresh or 0)
        if fresh is not None and fresh < minimum:
            raise QueryError(
                f"the freshness of stream '{name}' is {given}, below its window of "
                f"{window or format_interval(minimum)}: rows that may still join would be ignored; "
                "make it at least as long as the window"
            )

    def _check_basic(self) -> None:
        """Raise unless basic windows divide the longest window; shorter windows may be a single one."""
        if self.basic is None:
            return
        basic = format_interval(self.basic)
        if self.basic <= 0:
            raise QueryError(f"basic windows must be longer than zero; got {basic}")
        lengths = {name: self.bounds.retention(i) or 0 for i, name in enumerate(self.names)}
        name = max(lengths, key=lengths.__getitem__)
        length = lengths[name]
        window = f"the longest window, {format_interval(length)} of stream '{name}'"
        if 0 < length < self.basic:
            raise QueryError(f"basic windows of {basic} do not fit into {window}; make them shorter")
        if length > MAX_BASIC_WINDOWS * self.basic:
            raise QueryError(
                f"basic windows of {basic} would divide {window}, into more than {MAX_BASIC_WINDOWS}; "
                "make them longer"
            )


def check_names(names: Iterable[str]) -> None:
    """Raise for fewer than two streams, for too many, and for names that are equal but for case."""
    listed = tuple(names)
    if not listed:
        raise QueryError("there is no stream to join; name at least two")
    if len(listed) == 1:
        raise QueryError(f"a join needs at least two streams; there is only '{listed[0]}'")
    if len(listed) > MAX_STREAMS:
        raise QueryError(f"a join takes at most {MAX_STREAMS} streams; there are {len(listed)}")
    _refuse_duplicates("stream", listed)


def _refuse_characters(name: str) -> None:
    # States and stored columns are named after streams: `a@time`, `a.price`, `(a b)`.
    reserved = next((character for character in name if character in "@()." or character.isspace()), None)
    if reserved is not None:
        raise QueryError(
            f"a stream cannot be called {name!r}: its name must not contain {reserved!r}, "
            "nor any other of '@', '.', '(', ')' and white space"
        )


def _refuse_duplicates(kind: str, names: Iterable[str], advice: str = "") -> None:
    listed = list(names)
    for lower, count in Counter(name.lower() for name in listed).items():
        if count > 1:
            equal = " and ".join(f"'{name}'" for name in listed if name.lower() == lower)
            raise QueryError(f"each {kind} needs a unique name, ignoring case; got {equal}{advice}")
