"""How rows and work are divided over partitions.

What is correct: every result is found by one row, once. With `hash`, rows that join share a partition, and
all hops happen inside it, which needs a key of all streams. With `share`, each row is stored in one
partition, and tasks divide the rows of a batch among them, each probing the slices of all partitions. With
`psp`, rows are stored by time, and partials visit the partitions whose slices they may match. With `atr`,
each row of the master stream is in one partition, and the rows of the others are copied to wherever a master
row may need them.

Here it is chosen how a query starts; how it goes on is chosen before each batch (`weir.spark.rebalance`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from weir.adapt.settings import Changeable
from weir.errors import QueryError
from weir.expr.nodes import Column
from weir.partition.placement import SHARED_SPREADS, Placement, SharedSpread, place_by_time
from weir.plan.tree import Join, Leaf
from weir.query.model import Query
from weir.query.predicate import AttributeClass
from weir.query.windows import RowWindow
from weir.units import format_interval

_LOG = logging.getLogger("weir")

# Segments of the master stream, in times of what the others must be copied for: few rows are copied.
_SEGMENT = 8


@dataclass(frozen=True, slots=True)
class Segments:
    """The master stream's segments, in microseconds, and how far each other stream's rows reach into it.

    A row at time T may join with master rows from T - back to T + ahead.
    """

    master: str
    length: int
    reach: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Routing:
    """What was chosen: `key` for hash, `segments` for atr, `shared`, or one partition.

    `instead` is the spread that a query by key may go over to while it runs, `shortest` for either of the two
    the shortest window in µs.
    """

    partitions: int
    key: AttributeClass | None = None
    segments: Segments | None = None
    shared: SharedSpread | None = None
    instead: SharedSpread | None = None
    shortest: int | None = None

    @property
    def is_shared(self) -> bool:
        """True if rows find partners in other partitions than their own."""
        return self.shared is not None

    @property
    def needs_time(self) -> bool:
        """True if a row's time may decide where it goes, now or in a batch that another start decided."""
        return self.shared is not None or self.instead is not None

    def start(self) -> Placement:
        """The placement of the first batch."""
        if self.shared == "psp" and self.shortest is not None:
            return place_by_time(self.shortest, self.partitions)
        return Placement(self.name, self.partitions)

    @property
    def name(self) -> str:
        """The spread."""
        if self.shared is not None:
            return self.shared
        return "hash" if self.segments is None else "atr"

    def __str__(self) -> str:
        if self.partitions == 1:
            return "one partition"
        if self.key is not None:
            return f"{self.partitions} partitions by {self.key.name}"
        if self.shared is not None:
            how = "by slices of time" if self.shared == "psp" else "that share all slices"
            return f"{self.partitions} partitions {how}"
        assert self.segments is not None, "several partitions have a way to divide rows"
        length = format_interval(
            -(-self.segments.length // 1000) * 1000
        )  # a window of 8 s reaches 8 s - 1 µs
        return f"{self.partitions} partitions by segments of {length} of stream '{self.segments.master}'"


def routing(
    query: Query,
    plan: Join,
    wanted: str,
    partitions: int | None,
    cores: int,
    streaming: bool,
    shared: SharedSpread = "share",
) -> Routing:
    """The spread asked for, or the best there is; refused where the query or the plan cannot have it.

    Without a key, `auto` takes the spread named by `shared`; with one, it may go over to it.
    """
    if wanted in SHARED_SPREADS and not streaming:
        raise QueryError(f"spread='{wanted}' is for streams; static DataFrames take 'hash' or 'atr'")
    count = partitions or cores
    rows = [n for n, w in zip(query.names, query.windows, strict=True) if isinstance(w, RowWindow)]
    if rows:
        return _alone(f"the row window of stream '{rows[0]}' counts all its rows", partitions, count)
    key = covering_class(query)
    if wanted == "hash" and key is None:
        raise _no_key(query, streaming)
    if key is not None and wanted in ("hash", "auto"):
        if count == 1:
            return Routing(1)
        if wanted == "hash" or not streaming or not is_mjoin(plan):
            return Routing(count, key=key)
        return Routing(count, key=key, instead=shared, shortest=_shortest(query))
    # One partition that is shared may become several.
    if count == 1 and wanted not in SHARED_SPREADS:
        return Routing(1)
    if wanted == "atr" or not streaming:
        return Routing(count, segments=_segments(query))
    if is_mjoin(plan):
        chosen: SharedSpread = shared if wanted == "auto" else "psp" if wanted == "psp" else "share"
        return Routing(count, shared=chosen, shortest=_shortest(query))
    if wanted != "auto":
        raise QueryError(f"spread='{wanted}' needs an mjoin, not the tree {plan}; use plan='mjoin'")
    return _alone("no one key is shared by all streams of a plan that is not an mjoin", None, count)


def is_one_host(master: str) -> bool:
    """True if all tasks run in this process, so on this host."""
    return master == "local" or master.startswith("local[")


def shared_on(master: str) -> SharedSpread:
    """The spread for any condition: every task may read all slices where all tasks are on one host.

    >>> shared_on("local[4]"), shared_on("local-cluster[2,1,1024]"), shared_on("yarn")
    ('share', 'psp', 'psp')
    """
    return "share" if is_one_host(master) else "psp"


def check_plan(plan: Join, spread: str) -> None:
    """Refuse a plan that a running query cannot go over to for where its rows lie."""
    if spread in SHARED_SPREADS and not is_mjoin(plan):
        raise QueryError(
            f"a running query with spread='{spread}' whose rows find partners in other partitions cannot go "
            f"over to the tree {plan}; choose other probing orders of the mjoin"
        )


def movable(wanted: Changeable, routing: Routing) -> Changeable:
    """What of a plan may change while it runs, for where the rows lie."""
    if routing.segments is not None:
        return "nothing"
    return "orders" if routing.is_shared and wanted == "tree" else wanted


def covering_class(query: Query) -> AttributeClass | None:
    """A class with a column of every stream: rows that join then share a partition."""
    for c in query.predicate.classes:
        columns = {member.stream for member in c.members if isinstance(member, Column)}
        if columns == set(query.names):
            return c
    return None


def _alone(why: str, wanted: int | None, count: int) -> Routing:
    if wanted is not None and wanted > 1:
        raise QueryError(f"{why}, so it needs partitions=1; got {wanted}")
    if count > 1:
        _LOG.warning("the join runs in one partition, because %s", why)
    return Routing(1)


def _no_key(query: Query, streaming: bool) -> QueryError:
    """Why a query cannot be divided by hash, and what to ask for instead."""
    others = "'share' or 'psp'" if streaming else "'atr'"
    streams = ", ".join(f"'{name}'" for name in query.names)
    return QueryError(
        f"spread='hash' needs one key that all streams share, an equality chain over columns of {streams}; "
        f"use spread={others}, or leave it 'auto'"
    )


def is_mjoin(plan: Join) -> bool:
    """True if one join reads all streams."""
    return all(isinstance(child, Leaf) for child in plan.inputs)


def _shortest(query: Query) -> int:
    """The shortest time for which rows of a stream are kept."""
    kept = [kept for i in range(len(query.names)) if (kept := query.bounds.retention(i)) and kept > 0]
    return min(kept, default=1)


def _segments(query: Query) -> Segments:
    """Segments of the first stream; every other one is tied to it on both sides, or it would be unbounded."""
    upper, reach = query.bounds.upper, []
    for i, name in enumerate(query.names[1:], 1):
        back, ahead = upper[0][i], upper[i][0]
        assert back is not None and ahead is not None, "only row windows leave streams unbounded"
        reach.append((name, back, ahead))
    longest = max(back + ahead for _, back, ahead in reach)
    return Segments(query.names[0], max(1, _SEGMENT * longest), tuple(reach))
