"""Choose how a query divides rows and work over partitions when it starts.

    spread   a row is stored in              its probes run in
    hash     the partition of its key        that partition; needs one key of all streams
    share    one partition                   one task, on the slices of all partitions
    psp      the partition of its time       each partition with slices that it may match
    atr      the master stream's segment     its partition; rows of other streams are copied to all partitions
                                             where a master row may need them

With each of them, every result is found by one row, once. `weir.spark.rebalance` may change the spread and
the number of partitions before each batch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from weir.adapt.settings import Changeable
from weir.errors import QueryError
from weir.expr.nodes import Column
from weir.expr.types import spark_name
from weir.partition.placement import SHARED_SPREADS, Placement, SharedSpread, place_by_time
from weir.plan.tree import Join
from weir.query.model import Query
from weir.query.predicate import AttributeClass
from weir.query.windows import RowWindow
from weir.units import format_interval

_LOG = logging.getLogger("weir")
# The length of a segment, in multiples of the time around its ends for which rows are copied.
_SEGMENT_MULTIPLE = 8
_LONGEST_SEGMENT = 2**62


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of the master stream (µs), and the `reach` of other streams: name, back and ahead (µs).

    A row at time T may join master rows from T - back to T + ahead.
    """

    master: str
    length: int
    reach: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class RoutingKey:
    """The key by whose hash rows are divided: columns that are equal in every result, and their domain."""

    columns: tuple[str, ...]
    domain: str

    @staticmethod
    def of(key: AttributeClass) -> RoutingKey:
        """Describe the key of a class."""
        columns = (str(member) for member in key.members if isinstance(member, Column))
        return RoutingKey(tuple(columns), spark_name(key.domain))

    def agrees_with(self, other: RoutingKey, streams: Iterable[str]) -> bool:
        """True if rows that join by both keys have one hash: they share a column of every stream."""
        shared = {column.partition(".")[0] for column in set(self.columns) & set(other.columns)}
        return self.domain == other.domain and set(streams) <= shared

    def __str__(self) -> str:
        return " = ".join(self.columns)


@dataclass(frozen=True, slots=True)
class Routing:
    """The spread chosen: `key` for hash, `segments` for atr, `shared` for share and psp, or one partition.

    `fallback` is the spread to which a running query may change if a few keys have most of the work;
    `shortest_window` (µs) is set if `shared` or `fallback` is.
    """

    partitions: int
    key: AttributeClass | None = None
    segments: Segments | None = None
    shared: SharedSpread | None = None
    fallback: SharedSpread | None = None
    shortest_window: int | None = None

    @property
    def is_shared(self) -> bool:
        """True if rows find partners in any partition."""
        return self.shared is not None

    def first_placement(self) -> Placement:
        """Return the placement of the first batch."""
        if self.shared == "psp" and self.shortest_window is not None:
            return place_by_time(self.shortest_window, self.partitions)
        return Placement(self.name, self.partitions)

    @property
    def name(self) -> str:
        """The name of the spread."""
        return self.shared or ("hash" if self.segments is None else "atr")

    def __str__(self) -> str:
        if self.partitions == 1:
            return "one partition"
        if self.key is not None:
            return f"{self.partitions} partitions by {self.key.name}"
        if self.shared is not None:
            how = "by slices of time" if self.shared == "psp" else "that share all slices"
            return f"{self.partitions} partitions {how}"
        assert self.segments is not None, "without key or sharing, rows are divided by segments"
        # Round up, since a window of 8 s reaches 8 s - 1 µs.
        length = format_interval(-(-self.segments.length // 1000) * 1000)
        return f"{self.partitions} partitions by segments of {length} of stream '{self.segments.master}'"


def choose_routing(
    query: Query,
    plan: Join,
    spread: str,
    partitions: int | None,
    cores: int,
    is_streaming: bool,
    shared: SharedSpread,
    known: RoutingKey | None = None,
) -> Routing:
    """Return the routing for a spread, or refuse a spread that the query or the plan cannot have.

    `auto` divides by key where all streams share one, with `shared` as its fallback, and without one uses
    `shared`. Of several keys, that by which rows are divided already, `known`, is taken.
    """
    if spread in SHARED_SPREADS and not is_streaming:
        raise QueryError(f"spread='{spread}' is for streams; static DataFrames take 'hash' or 'atr'")
    count = partitions or cores
    by_rows = [n for n, w in zip(query.names, query.windows, strict=True) if isinstance(w, RowWindow)]
    if by_rows:
        reason = f"the row window of stream '{by_rows[0]}' counts all its rows"
        return _use_one_partition(reason, partitions, count)
    key = _find_common_key(query, known)
    if spread == "hash" and key is None:
        raise _no_key_error(query, is_streaming)
    if key is not None and spread in ("hash", "auto"):
        if spread == "hash" or count == 1 or not is_streaming or not plan.is_mjoin:
            return Routing(count, key=key)
        return Routing(count, key=key, fallback=shared, shortest_window=_shortest_window(query))
    # A single partition that may become several later is routed as such.
    if count == 1 and spread not in SHARED_SPREADS and not (spread == "atr" and is_streaming):
        return Routing(1)
    if spread == "atr" or not is_streaming:
        return Routing(count, segments=_choose_segments(query))
    if plan.is_mjoin:
        chosen: SharedSpread = shared if spread == "auto" else "psp" if spread == "psp" else "share"
        return Routing(count, shared=chosen, shortest_window=_shortest_window(query))
    if spread != "auto":
        raise QueryError(f"spread='{spread}' needs an mjoin, not the tree {plan}; use plan='mjoin'")
    reason = "no one key is shared by all streams of a plan that is not an mjoin"
    return _use_one_partition(reason, None, count)


def is_one_host(master: str) -> bool:
    """True if all tasks run in this process, so on this host."""
    return master == "local" or master.startswith("local[")


def choose_shared_spread(master: str) -> SharedSpread:
    """Return the spread for any condition: on one host every task can read all slices cheaply.

    >>> choose_shared_spread("local[4]"), choose_shared_spread("yarn")
    ('share', 'psp')
    """
    return "share" if is_one_host(master) else "psp"


def limit_changes(changeable: Changeable, routing: Routing) -> Changeable:
    """Return what of a plan may change while it runs, because of where its rows lie."""
    if routing.segments is not None:
        return "nothing"
    return "orders" if routing.is_shared and changeable == "tree" else changeable


def _find_common_key(query: Query, known: RoutingKey | None) -> AttributeClass | None:
    """A key with a column of every stream: rows that join then share a partition."""
    common = [
        key
        for key in query.predicate.classes
        if {member.stream for member in key.members if isinstance(member, Column)} == set(query.names)
    ]
    if known is not None:
        common.sort(key=lambda key: not known.agrees_with(RoutingKey.of(key), query.names))
    return next(iter(common), None)


def _use_one_partition(reason: str, asked: int | None, count: int) -> Routing:
    if asked is not None and asked > 1:
        raise QueryError(f"{reason}, so it needs partitions=1; got {asked}")
    if count > 1:
        _LOG.warning("the join runs in one partition, because %s", reason)
    return Routing(1)


def _no_key_error(query: Query, is_streaming: bool) -> QueryError:
    others = "'share' or 'psp'" if is_streaming else "'atr'"
    streams = ", ".join(f"'{name}'" for name in query.names)
    return QueryError(
        f"spread='hash' needs one key that all streams share, an equality chain over columns of {streams}; "
        f"use spread={others}, or leave it 'auto'"
    )


def _shortest_window(query: Query) -> int:
    """The shortest time (µs) for which rows of a stream are kept."""
    retentions = [query.bounds.retention(i) for i in range(len(query.names))]
    return min((retention for retention in retentions if retention and retention > 0), default=1)


def _choose_segments(query: Query) -> Segments:
    """Cut the first stream into segments; time bounds tie every other stream to it on both sides."""
    upper, reach = query.bounds.upper, []
    for i, name in enumerate(query.names[1:], 1):
        back, ahead = upper[0][i], upper[i][0]
        assert back is not None and ahead is not None, "only row windows leave streams unbounded"
        reach.append((name, back, ahead))
    longest = max(back + ahead for _, back, ahead in reach)
    length = min(max(1, _SEGMENT_MULTIPLE * longest), _LONGEST_SEGMENT)
    return Segments(query.names[0], length, tuple(reach))
