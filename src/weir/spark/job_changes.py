"""What differs between the job of a checkpoint and the one that starts there, and what comes of it.

A change holds from the next batch on: rows that are stored stay as they are, and results that were found are
not found again. What cannot be had from the stored rows is refused, with what it would cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.nodes import Column, columns_of
from weir.expr.types import parse_type
from weir.kernel.state_adaptation import Missing, StateAdapter, widens
from weir.plan.tree import is_composed
from weir.query.model import Query
from weir.query.windows import RowWindow, TimeWindow
from weir.spark.errors import ChangedQueryError
from weir.spark.job_description import Definition, JobDescription, leaf_schemas
from weir.units import format_interval

_COST = "or start with a new checkpointLocation, which reads the streams again from where their sources start"
_FROM_NOW_ON = "from the next batch on"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: what it is and what happens to it; `refusal` says why it cannot be, "" if it can."""

    what: str
    effect: str = ""
    refusal: str = ""

    def __str__(self) -> str:
        return f"{self.what}: " + (f"refused, {self.refusal}" if self.refusal else self.effect)


def check_changes(stored: JobDescription, job: JobDescription, query: Query, uri: str) -> None:
    """Refuse a job that cannot go on from a checkpoint; say in what it differs and what to do."""
    for change in find_changes(stored, job, query):
        if change.refusal:
            raise ChangedQueryError(f"the checkpoint {uri} was written {change.refusal}, {_COST}")


def find_changes(stored: JobDescription, job: JobDescription, query: Query) -> Iterator[Change]:
    """Yield every difference; `query` is that of the job that starts, with its streams in the stored order.

    Each refusal goes on from "the checkpoint was written", and ends with what to do to keep the checkpoint.
    """
    yield from _find_stream_changes(stored, job)
    if set(stored.streams) != set(job.streams):
        return
    yield from _find_session_changes(stored, job)
    yield from _find_window_changes(stored, job)
    yield from _find_column_changes(stored, job, query)
    yield from _find_clause_changes(stored, job)
    yield from _find_plan_changes(stored, job)
    yield from _find_spread_changes(stored, job)


def _find_stream_changes(stored: JobDescription, job: JobDescription) -> Iterator[Change]:
    before, now = ", ".join(stored.streams), ", ".join(job.streams)
    if set(stored.streams) != set(job.streams):
        refusal = f"with the streams {before} and the query joins {now}; join the same streams"
        yield Change(f"streams {now} after {before}", refusal=refusal)
        return
    for name in stored.streams:
        time, taken = (_show_time(each, name) for each in (stored, job))
        if taken != time:
            kept = f"the time column '{time}' of stream '{name}'"
            refusal = f"with {kept} and the query takes '{taken}'; pass time='{time}'"
            yield Change(f"time column {taken} of stream '{name}' after {time}", refusal=refusal)


def _show_time(job: JobDescription, stream: str) -> str:
    """The time of a stream as a user writes it: an expression, or a column."""
    return job.definition.time_expressions.get(stream, job.definition.time[stream])


def _find_session_changes(stored: JobDescription, job: JobDescription) -> Iterator[Change]:
    for name, before in stored.session.items():
        now = job.session.get(name, before)
        if now != before:
            refusal = f"with {name} = {before} and this session has {now}; set it to {before}"
            yield Change(f"{name} {now} after {before}", refusal=refusal)


def _find_window_changes(stored: JobDescription, job: JobDescription) -> Iterator[Change]:
    for name, window in stored.definition.windows.items():
        wanted = job.definition.windows[name]
        if wanted == window:
            continue
        before, now = (str(each or "from time bounds") for each in (window, wanted))
        what = f"window {now} of stream '{name}' after {before}"
        if isinstance(wanted, RowWindow) != isinstance(window, RowWindow):
            refusal = f"with the window {before} of stream '{name}' and the query asks for {now}, by which "
            yield Change(what, refusal=f"{refusal}stored rows were not kept; ask for {before} again")
        elif stored.segments and stored.partitions != 1:
            refusal = f"with spread='atr' for the window {before} of stream '{name}' and the query asks for "
            yield Change(what, refusal=f"{refusal}{now}; ask for {before} again")
        else:
            yield Change(what, "for stored rows too, but those dropped by now stay dropped")


def _find_column_changes(stored: JobDescription, job: JobDescription, query: Query) -> Iterator[Change]:
    for name, columns in job.columns.items():
        known = stored.columns[name]
        for column in columns:
            if column not in known:
                yield Change(f"column {name}.{column} is new in its stream", "NULL in stored rows")
            elif known[column] != columns[column]:
                is_time = column == stored.definition.time[name]
                yield _compare_types(f"{name}.{column}", known[column], columns[column], job, is_time)
    for name, schema in leaf_schemas(query, job.plan).items():
        times, filled = job.definition.time, job.list_grown(stored)
        missing = StateAdapter(stored.states[name], schema, times, filled).find_missing()
        if missing is not None:
            yield _describe_missing(missing, name, stored, query)


def _compare_types(name: str, before: str, now: str, job: JobDescription, is_time: bool) -> Change:
    what = f"column {name} is {now} after {before}"
    keys = (key for state in job.states.values() for key in state.keys.values())
    is_stored = any(name in state.columns for state in job.states.values())
    if not is_time and not is_stored and not any(name in key.members for key in keys):
        return Change(what, "the state does not hold it")
    try:
        is_wider = widens(before, parse_type(now))
    except QueryError:
        is_wider = False
    if is_wider:
        return Change(what, "stored values are cast")
    refusal = f"when column {name} was {before} and now it is {now}, into which stored values may not fit; "
    return Change(what, refusal=f"{refusal}cast it to {before} before the join")


def _describe_missing(missing: Missing, name: str, stored: JobDescription, query: Query) -> Change:
    if missing.name.endswith("@arrival"):
        refusal = f"without a freshness of stream '{name}', so that stored rows lack their arrival; drop it"
        return Change(f"freshness of stream '{name}'", refusal=refusal)
    form = stored.states[name]
    keys = (key for key in form.keys.values() if missing.name in key.members)
    domain = next((key.domain for key in keys if key.domain != missing.wanted), "")
    if kind := missing.stored or domain:
        what = "column" if missing.stored else "key"
        wide = f"{what} {missing.name} as {kind} and the query reads {missing.wanted}"
        return Change(f"type of {missing.name}", refusal=f"with {wide}; cast it back before the join")
    members = (member for key in form.keys.values() for member in key.members)
    columns = (Column(name, column.removeprefix(f"{name}."), pa.null()).text for column in form.columns)
    kept = ", ".join(dict.fromkeys((f"{name}.{stored.definition.time[name]}", *members, *columns)))
    selected = {column.text for output in query.select for column in columns_of(output.expr)}
    place = "SELECT list" if missing.name in selected else "condition"
    lacks = f"{missing.name}, which the {place} needs now: the state of '{name}' keeps only {kept}"
    return Change(f"column {missing.name}", refusal=f"without {lacks}; leave it out of the {place}")


def _find_clause_changes(stored: JobDescription, job: JobDescription) -> Iterator[Change]:
    """Yield changes of conditions, output columns, lateness and freshness, all of which may change."""
    outputs = [[f"{name}: {text}" for name, text in each.outputs.items()] for each in (stored, job)]
    yield from _compare_lines("condition", stored.conditions, job.conditions)
    yield from _compare_lines("output column", *outputs)
    yield from _compare_lines("computed by Spark:", stored.computed, job.computed)
    for name, late in stored.definition.late.items():
        asked = job.definition.late[name]
        if asked != late:
            what = f"lateness {format_interval(asked)} of stream '{name}' after {format_interval(late)}"
            yield Change(what, f"{_FROM_NOW_ON}; the watermark does not go back")
    for name, fresh in stored.definition.fresh.items():
        wanted = job.definition.fresh[name]
        if fresh not in (None, wanted):
            yield Change(f"freshness {wanted or 'for ever'} of stream '{name}' after {fresh}", _FROM_NOW_ON)
    yield from _find_clock_changes(stored.definition, job.definition)


def _find_clock_changes(stored: Definition, asked: Definition) -> Iterator[Change]:
    judged = [[isinstance(each, TimeWindow) for each in job.fresh.values()] for job in (stored, asked)]
    if stored.clock != asked.clock and all(map(any, judged)):
        refusal = f"with clock='{stored.clock}' and the query asks for '{asked.clock}', by which stored rows "
        refusal += f"have no arrival; pass clock='{stored.clock}'"
        yield Change(f"clock {asked.clock} after {stored.clock}", refusal=refusal)


def _compare_lines(thing: str, before: Collection[str], now: Collection[str]) -> Iterator[Change]:
    yield from (Change(f"{thing} {line} is new", _FROM_NOW_ON) for line in now if line not in before)
    yield from (Change(f"{thing} {line} is gone", _FROM_NOW_ON) for line in before if line not in now)


def _find_plan_changes(stored: JobDescription, job: JobDescription) -> Iterator[Change]:
    # Plans that differ in their probing orders only have the same text, and the same state.
    if str(stored.plan) != str(job.plan):
        kept, asked = stored.plan, job.plan
        refusal = f"with the plan {kept} and the query asks for {asked}; drop plan= to keep {kept}"
        yield Change(f"plan {job.plan} after {stored.plan}", refusal=refusal)
    elif stored.join_windows != job.join_windows:
        before, now = stored.join_windows, job.join_windows
        refusal = f"with the join windows {before} and the plan has {now}; drop plan= to keep them"
        yield Change(f"join windows {now} after {before}", refusal=refusal)
    elif stored.joins != job.joins and not job.plan.is_mjoin:
        counts_rows = any(isinstance(window, RowWindow) for window in job.definition.windows.values())
        if is_composed(job.plan) or counts_rows:
            why = "a window of rows" if counts_rows else "windows of its joins"
            refusal = f"with stored joins of the plan {job.plan}, which cannot be built again under {why}; "
            yield Change("stored joins", refusal=f"{refusal}change the query back")
        else:
            yield Change("stored joins", "given up, and built again from the rows of the streams")


def _find_spread_changes(stored: JobDescription, job: JobDescription) -> Iterator[Change]:
    # Shared rows find partners wherever these lie, but only if none of them is stored twice.
    may_change = stored.partitions == 1 or (stored.is_shared and job.is_shared)
    if stored.spread != job.spread and not may_change:
        spread = f"spread='{stored.spread}'"
        refusal = f"with {spread} and the query asks for '{job.spread}'; pass {spread} to keep it"
        yield Change(f"spread {job.spread} after {stored.spread}", refusal=refusal)
    elif stored.segments and stored.partitions != 1 and stored.segments != job.segments:
        refusal = "with spread='atr' for other time bounds; change them back"
        yield Change("segments of time", refusal=refusal)
    elif job.partitions not in (None, stored.partitions):
        yield _change_partitions(stored, job)
    elif (
        stored.key
        and stored.partitions != 1
        and not (job.key and stored.key.agrees_with(job.key, job.streams))
    ):
        refusal = f"with rows divided by {stored.key} as {stored.key.domain}, by which it joins no more"
        yield Change(f"key {job.key} after {stored.key}", refusal=f"{refusal}; keep that condition")


def _change_partitions(stored: JobDescription, job: JobDescription) -> Change:
    kept, asked = stored.partitions, job.partitions
    what = f"{asked} partitions after {kept}"
    if _can_cut_again(job):
        return Change(what, "stored slices are cut again before the next batch")
    why = "since joins with windows of their own fix that number"
    refusal = f"with {kept} partitions and the query asks for {asked}; drop partitions= to keep {kept}, {why}"
    return Change(what, refusal=refusal)


def _can_cut_again(job: JobDescription) -> bool:
    """True if stored rows say where they lie with another number of partitions.

    A window of rows over a join counts those of a partition, and joins with windows of their own do not keep
    all times, which segments need.
    """
    windows = [join.window for join in job.plan.inner() if join is not job.plan]
    if job.spread == "atr":
        return not any(windows)
    return not any(isinstance(window, RowWindow) for window in windows)
