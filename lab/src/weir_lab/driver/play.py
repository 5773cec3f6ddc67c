"""Run a data set through the plain mjoin, batch by batch, with each policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weir.order.policies import DriverOrder, DriverPolicy, choose_order, rank_rows
from weir_lab.driver.arrivals import Int64s
from weir_lab.driver.course import Course, mean_early_share, mean_time_ratio
from weir_lab.driver.settings import (
    BATCH_NAMES,
    COMPARED,
    CONSUMPTION,
    ROUND_ROBIN,
    TIMESTAMP,
    UNEVEN,
    DataSet,
)
from weir_lab.driver.streams import Known, Streams, count_statistics, generate
from weir_lab.driver.tuples import MJoin, pause_garbage_collection

HALVES: Mapping[str, tuple[float, float]] = {"all": (0.2, 1.0), "first": (0.2, 0.6), "second": (0.6, 1.0)}
# The figures: which data sets, and which part of the batches.
FIGURES: Mapping[int, tuple[tuple[str, ...], str]] = {
    6: (("I", "II", "III"), "all"),
    7: (("IV", "V", "VI"), "first"),
    8: (("IV", "V", "VI"), "second"),
}
GRID = tuple(i / 20 for i in range(31))


@dataclass(frozen=True, slots=True)
class Run:
    """All batches of a data set by one policy, in one repeat.

    `ahead`: the order was found before the clock started, so that only the joining is timed.
    """

    data_set: str
    batch: str
    policy: str
    repeat: int
    ahead: bool
    courses: tuple[Course, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """One cell of tables 4 and 5: the mean over repeats, with the least and the most."""

    data_set: str
    batch: str
    policy: str
    ahead: bool
    time: float
    time_least: float
    time_most: float
    early: float
    early_least: float
    early_most: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The share of results over time as a multiple of timestamp-based's: figures 6 to 8."""

    data_set: str
    batch: str
    policy: str
    half: str
    time: float
    share: float


def is_in_figure(curve: Curve, figure: int) -> bool:
    """Whether a figure shows it."""
    data_sets, half = FIGURES[figure]
    return curve.data_set in data_sets and curve.half == half


def policies(data_set: DataSet) -> tuple[str, ...]:
    """Those that say something of it: where all selectivities are equal, going by them is no policy."""
    even = len(data_set.rows) == 3 and data_set.name not in UNEVEN
    return tuple(policy for policy in COMPARED if not (even and policy == CONSUMPTION))


def play_data_set(
    data_set: DataSet,
    batches: Sequence[int],
    repeats: int,
    ahead: bool,
    tell: Callable[[str], None],
    names: Sequence[str] | None = None,
) -> Iterator[Run]:
    """Every policy, or those named; batch by batch side by side, so that a busy moment hits them all."""
    for repeat in range(repeats):
        streams = generate(data_set, repeat)
        facts = count_statistics(streams)
        for count in batches:
            tell(f"data set {data_set.name}, {count} batches, repeat {repeat + 1}")
            played = {p: play(streams, count, p, facts, ahead) for p in names or policies(data_set)}
            with pause_garbage_collection():
                courses = zip(*zip(*played.values(), strict=True), strict=True)
                yield from (
                    Run(data_set.name, BATCH_NAMES[count], policy, repeat, ahead, courses_of_policy)
                    for policy, courses_of_policy in zip(played, courses, strict=True)
                )


def play(streams: Streams, count: int, policy: str, facts: Known, ahead: bool = False) -> Iterator[Course]:
    """All batches of a data set."""
    mjoin = MJoin(streams.data_set.streams)
    cuts = streams.cuts(count)
    for batch in range(count):
        buffers = _piece(streams.keys, cuts, batch)
        if ahead:
            yield mjoin.as_told(*_told(streams, cuts, batch, policy, facts))
        elif policy == TIMESTAMP:
            yield mjoin.by_time(buffers, _piece(streams.times, cuts, batch))
        elif policy == ROUND_ROBIN:
            yield mjoin.in_turn(buffers)
        else:
            yield mjoin.by_stream(
                choose_order(as_policy(policy), streams.waiting(cuts, batch, facts)), buffers
            )


def order_rows(
    streams: Streams, cuts: Mapping[str, Int64s], batch: int, wanted: DriverOrder, facts: Known
) -> tuple[Int64s, Int64s]:
    """The rows of a batch as they go: the number of the stream of each, and its place in that stream."""
    times = {
        name: stamps[cuts[name][batch] : cuts[name][batch + 1]] for name, stamps in streams.times.items()
    }
    ranks = rank_rows(wanted, streams.waiting(cuts, batch, facts), times)
    names = streams.data_set.streams
    owners = np.repeat(np.arange(len(names)), [len(times[name]) for name in names])
    places = np.concatenate([np.arange(*cuts[name][batch : batch + 2]) for name in names])
    going = np.argsort(np.concatenate([ranks[name] for name in names]), kind="stable")
    return owners[going], places[going]


def score_runs(runs: Iterable[Run]) -> list[Score]:
    """Tables 4 and 5."""
    cells: dict[tuple[str, str, str, bool], list[tuple[float, float]]] = {}
    for run, beside in _paired(runs):
        cell = cells.setdefault((run.data_set, run.batch, run.policy, run.ahead), [])
        cell.append(
            (mean_time_ratio(run.courses, beside.courses), mean_early_share(run.courses, beside.courses))
        )
    rows = []
    for (data_set, batch, policy, ahead), pairs in cells.items():
        times, shares = zip(*pairs, strict=True)
        rows.append(Score(data_set, batch, policy, ahead, *_spread(times), *_spread(shares)))
    return rows


def compute_curves(runs: Iterable[Run]) -> list[Curve]:
    """Figures 6 to 8, as the paper measures them: with the choosing."""
    cells: dict[tuple[str, str, str, str], list[list[float]]] = {}
    for timed, beside in _paired(run for run in runs if not run.ahead):
        for half, (since, until) in HALVES.items():
            shares = [mean_early_share(timed.courses, beside.courses, at, since, until) for at in GRID]
            cells.setdefault((timed.data_set, timed.batch, timed.policy, half), []).append(shares)
    return [
        Curve(*cell, time=at, share=float(share))
        for cell, shares in cells.items()
        for at, share in zip(GRID, np.mean(shares, axis=0), strict=True)
    ]


def _paired(runs: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
    """Each run with timestamp-based's of the same repeat."""
    listed = list(runs)
    beside = {
        (run.data_set, run.batch, run.repeat, run.ahead): run for run in listed if run.policy == TIMESTAMP
    }
    return ((run, beside[run.data_set, run.batch, run.repeat, run.ahead]) for run in listed)


def _told(
    streams: Streams, cuts: Mapping[str, Int64s], batch: int, policy: str, facts: Known
) -> tuple[list[str], list[int]]:
    owners, places = order_rows(streams, cuts, batch, as_policy(policy), facts)
    names = streams.data_set.streams
    keys = np.empty(len(owners), np.int64)
    for number, name in enumerate(names):
        keys[owners == number] = streams.keys[name][places[owners == number]]
    return [names[owner] for owner in owners.tolist()], keys.tolist()


def _piece(columns: Mapping[str, Int64s], cuts: Mapping[str, Int64s], batch: int) -> dict[str, list[int]]:
    return {
        name: column[cuts[name][batch] : cuts[name][batch + 1]].tolist() for name, column in columns.items()
    }


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return sum(values) / len(values), min(values), max(values)


def as_policy(policy: str) -> DriverPolicy:
    """A policy of this package as weir.order's."""
    return policy  # type: ignore[return-value]
