"""What a checkpoint's state depends on, and whether a query that starts again can go on from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weir.expr.nodes import is_internal
from weir.partition.placement import SHARED_SPREADS
from weir.plan.tree import Join, is_composed
from weir.query.describe import describe
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.spark.errors import ChangedQueryError

VERSION = 5


@dataclass(frozen=True)
class JobDescription:
    """The query, plan and spread of a checkpoint; `columns` are the types of each stream's columns.

    `partitions` is None where rows find partners in any partition.
    """

    columns: Mapping[str, Mapping[str, str]]
    times: Mapping[str, str]
    windows: Mapping[str, str]
    query: str
    plan: Join
    spread: str
    partitions: int | None
    version: int = VERSION

    @property
    def is_shared(self) -> bool:
        """True if rows find partners in any partition."""
        return self.spread in SHARED_SPREADS

    @property
    def join_windows(self) -> str:
        """The windows between joins of a composed plan, where they change the results."""
        joins = self.plan.inner() if is_composed(self.plan) else ()
        return ", ".join(str(join.window) for join in joins)


def describe_job(
    query: Query, plan: Join, partitions: int, spread: str, projection: Sequence[str] = ()
) -> JobDescription:
    """Describe what the state of a query depends on; `projection` is what Spark computes before the join."""
    return JobDescription(
        columns={
            s.name: {field.name: str(field.type) for field in s.schema if not is_internal(field.name)}
            for s in query.streams
        },
        times={s.name: s.time for s in query.streams},
        windows={n: str(w or "from time bounds") for n, w in zip(query.names, query.windows, strict=True)},
        query="\n".join([describe(replace(query, budget=None, basic=None)), *projection]),
        plan=plan,
        spread=spread,
        partitions=None if spread in SHARED_SPREADS else partitions,
    )


def check_version(stored: Mapping[str, Any], uri: str) -> None:
    """Refuse a checkpoint of another format."""
    if stored.get("version") != VERSION:
        raise ChangedQueryError(
            f"the checkpoint {uri} has format {stored.get('version')} and this version of weir reads format "
            f"{VERSION}; run the version that wrote it, or start with a new checkpointLocation"
        )


def check_unchanged(stored: JobDescription, job: JobDescription, uri: str) -> None:
    """Refuse a query that cannot go on from the state of a checkpoint; say what differs and what to do."""
    for difference in _differences(stored, job):
        written = f"the checkpoint {uri} was written {difference}"
        raise ChangedQueryError(f"{written}, or start with a new checkpointLocation")


def _differences(old: JobDescription, new: JobDescription) -> Iterator[str]:
    yield from _stream_differences(old, new)
    for name, window in old.windows.items():
        if new.windows[name] != window:
            kept, asked = f"the window {window} of stream '{name}'", new.windows[name]
            yield f"with {kept} and the query asks for {asked}; ask for {window} again"
    if old.query != new.query:
        before, now = _lines_only_in(old.query, new.query), _lines_only_in(new.query, old.query)
        yield f"for a query with '{before}' and this one has '{now}'; change it back"
    # Plans that differ in their probing orders only have the same text, and the same state.
    if str(old.plan) != str(new.plan):
        yield f"with the plan {old.plan} and the query asks for {new.plan}; drop plan= to keep {old.plan}"
    if old.join_windows != new.join_windows:
        before, now = old.join_windows, new.join_windows
        yield f"with the join windows {before} and the plan has {now}; drop plan= to keep them"
    yield from _spread_differences(old, new)


def _stream_differences(old: JobDescription, new: JobDescription) -> Iterator[str]:
    if old.columns.keys() != new.columns.keys():
        before, now = ", ".join(old.columns), ", ".join(new.columns)
        yield f"with the streams {before} and the query joins {now}; join the same streams"
        return
    for name, columns in old.columns.items():
        time, taken = old.times[name], new.times[name]
        if time != taken:
            kept = f"the time column '{time}' of stream '{name}'"
            yield f"with {kept} and the query takes '{taken}'; pass time='{time}'"
        for column in {**columns, **new.columns[name]}:
            before, now = (types.get(column, "absent") for types in (columns, new.columns[name]))
            if before != now:
                change = f"column '{column}' of stream '{name}' was {before} and now it is {now}"
                yield f"when {change}; cast, add or drop it before the join"


def _spread_differences(old: JobDescription, new: JobDescription) -> Iterator[str]:
    # Shared rows find partners wherever these lie, but only if none of them is stored twice.
    may_change = old.partitions == 1 or (old.is_shared and new.is_shared)
    if old.spread != new.spread and not may_change:
        spread = f"spread='{old.spread}'"
        yield f"with {spread} and the query asks for '{new.spread}'; pass {spread} to keep it"
    elif new.partitions not in (None, old.partitions) and not _can_cut_again(new):
        kept, asked = old.partitions, new.partitions
        why = "since joins with windows of their own fix that number"
        yield f"with {kept} partitions and the query asks for {asked}; drop partitions= to keep {kept}, {why}"


def _can_cut_again(job: JobDescription) -> bool:
    """True if stored rows say where they lie with another number of partitions.

    A window of rows over a join counts those of a partition, and joins with windows of their own do not keep
    all times, which segments need.
    """
    windows = [join.window for join in job.plan.inner() if join is not job.plan]
    if job.spread == "atr":
        return not any(windows)
    return not any(isinstance(window, RowWindow) for window in windows)


def _lines_only_in(text: str, other: str) -> str:
    known = set(other.splitlines())
    return "; ".join(line.strip() for line in text.splitlines() if line not in known)
