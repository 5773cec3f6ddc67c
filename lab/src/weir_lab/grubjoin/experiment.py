"""`weir-lab grubjoin`: the experiments of Gedik et al. 2007 as tables, CSV files and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weir_lab.aim import Aim
from weir_lab.csv import write_tables
from weir_lab.grubjoin.aims import aims
from weir_lab.grubjoin.batches import KINDS, BatchCost, measure_batches
from weir_lab.grubjoin.decide import Optimality, Timing, measure_optimality, measure_timings
from weir_lab.grubjoin.drift import Moment, play_drift
from weir_lab.grubjoin.events import Seen, detect_events
from weir_lab.grubjoin.output import (
    FITTING,
    MULTIPLIERS,
    SCENARIOS,
    WAYS,
    Bench,
    Point,
    bench,
    figure11,
    figure12,
    figure13,
    figure14,
    figure15,
    figure16,
    find_equal_rate,
    reuse_points,
    table2,
)
from weir_lab.grubjoin.streams import DEVIATIONS


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done.

    `problems` for figure 7 and `repeats` of each timing; runs of `seconds`, of which `warm` do not count,
    with so many `seeds` (`few` in the figures about one way only); one row stands for `thin`, and a tick is
    `every` seconds. What follows is what the figures vary; `whole` is for how many seconds streams are run
    that are not thin (0: not at all), and of the tenths of z every so many is tried.
    """

    problems: int
    repeats: int
    throttles: tuple[float, ...]
    thin: float
    every: float
    seconds: float
    warm: float
    seeds: int
    few: int
    rates: tuple[float, ...]
    deviations: tuple[float, ...]
    streams: tuple[int, ...]
    basics: tuple[float, ...]
    periods: tuple[float, ...]
    buffers: tuple[float, ...]
    buffer_rates: tuple[float, ...]
    multipliers: tuple[int, ...]
    whole: float
    event_seconds: float
    event_throttles: tuple[float, ...]
    phase: float
    batch_repeats: int
    tenths: int
    kinds: tuple[str, ...] = tuple(KINDS)


FULL = Size(
    problems=500,
    repeats=11,
    throttles=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
    thin=4.0,
    every=0.25,
    seconds=60.0,
    warm=20.0,
    seeds=3,
    few=2,
    rates=(50.0, 100.0, 150.0, 200.0, 300.0),
    deviations=(25.0, 75.0, 100.0),
    streams=(4, 5),
    basics=(0.5, 1.0, 2.0, 4.0),
    periods=(0.5, 1.0, 3.0, 5.0, 8.0),
    buffers=(0.0, 0.5, 1.0, 2.0),
    buffer_rates=(150.0, 200.0),
    multipliers=MULTIPLIERS[1:],
    whole=40.0,
    event_seconds=120.0,
    event_throttles=(0.05, 0.1, 0.25, 0.5),
    phase=25.0,
    batch_repeats=7,
    tenths=1,
)
QUICK = Size(
    problems=40,
    repeats=3,
    throttles=(0.1, 0.4, 0.8),
    thin=8.0,
    every=0.5,
    seconds=30.0,
    warm=20.0,
    seeds=1,
    few=1,
    rates=(100.0, 200.0),
    deviations=(25.0, 75.0),
    streams=(5,),
    basics=(1.0, 4.0),
    periods=(1.0, 5.0),
    buffers=(0.0, 1.0),
    buffer_rates=(200.0,),
    multipliers=(10,),
    whole=0.0,
    event_seconds=70.0,
    event_throttles=(0.1, 0.25),
    phase=10.0,
    batch_repeats=3,
    tenths=3,
)


@dataclass(frozen=True, slots=True)
class Report:
    """All measurements; the files hold them too."""

    size: Size
    bench: Bench
    optimality: list[Optimality]
    timings: list[Timing]
    points: list[Point]
    seen: list[Seen]
    moments: list[Moment]
    batches: list[BatchCost]
    aims: list[Aim]


def run(size: Size, out: Path, tell: Callable[[str], None]) -> Report:
    """Run all experiments and write their files; `tell` is called with each step."""
    out.mkdir(parents=True, exist_ok=True)
    tell("figure 7")
    shares = list(measure_optimality(size.problems, size.throttles))
    tell("figures 8 to 10")
    times = list(measure_timings(size.repeats, (5, 10, 20), size.throttles))
    tell("batches at a throttle fraction")
    costs = [
        cost
        for kind in size.kinds
        for cost in measure_batches(kind, _TENTHS[:: size.tenths], size.batch_repeats)
    ]
    tell("the machine")
    machine = bench(size.thin, size.seconds, size.warm, size.every)
    points = list(_points(size, machine, tell))
    tell("planted events")
    events = [
        detect_events(z, way, seed, size.event_seconds, size.warm)
        for z in size.event_throttles
        for seed in range(1, size.few + 1)
        for way in WAYS
    ]
    tell("a lag that drifts")
    moments = [moment for seed in range(1, size.few + 1) for moment in play_drift(machine, seed, size.phase)]
    told = aims(shares, times, points, events, moments, costs)
    report = Report(size, machine, shares, times, points, events, moments, costs, told)
    _write(report, out)
    _draw(report, out)
    return report


_TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def _points(size: Size, machine: Bench, tell: Callable[[str], None]) -> Iterator[Point]:
    many, few = range(1, size.seeds + 1), range(1, size.few + 1)
    first = list(_told(figure11(machine, size.rates, many), tell))
    yield from first
    yield from reuse_points(first, "lagged", 200.0, "12", DEVIATIONS[2], "lagged")
    yield from _told(figure12(machine, size.deviations, many), tell)
    for scenario in SCENARIOS:
        yield from reuse_points(first, scenario, FITTING, "13", 3, scenario)
    yield from _told(figure13(machine, size.streams, many), tell)
    yield from _told(figure14(machine, size.basics, (25.0, 50.0, 75.0)[: 1 + 2 * (size.few > 1)], few), tell)
    yield from _told(figure15(machine, (3, *size.streams), size.periods, few), tell)
    yield from _told(figure16(machine, size.buffers, size.buffer_rates, few), tell)
    rate = find_equal_rate(first)
    yield from reuse_points(first, "lagged", rate, "II", 1, f"{rate:g} rows/s")
    yield from _told(table2(machine, rate, size.multipliers, few), tell)
    if size.whole:
        tell("streams that are not thin")
        yield from _whole(bench(1.0, size.whole, size.warm), tell)


def _whole(machine: Bench, tell: Callable[[str], None]) -> Iterator[Point]:
    """Figure 11 at 200 rows a second as the paper has it, to see what thinning changes."""
    for point in _told(figure11(machine, (200.0,), (1,)), tell):
        yield Point(**{**asdict(point), "figure": "11, not thin"})


def _told(points: Iterable[Point], tell: Callable[[str], None]) -> Iterator[Point]:
    for point in points:
        name = "table II" if point.figure == "II" else f"figure {point.figure}"
        tell(f"{name}: {point.series}, {point.x:g}, {point.way}, seed {point.seed}")
        yield point


def _write(report: Report, out: Path) -> None:
    tables: list[tuple[str, Sequence[Any]]] = [
        *(
            (_file(figure), [point for point in report.points if point.figure == figure])
            for figure in dict.fromkeys(point.figure for point in report.points)
        ),
        *(
            (f"figure{n}", [timing for timing in report.timings if timing.figure == n])
            for n in ("8", "9", "10")
        ),
        ("figure7", report.optimality),
        ("events", report.seen),
        ("drift", report.moments),
        ("batches", report.batches),
        ("aims", report.aims),
    ]
    write_tables(out, tables)


def _file(figure: str) -> str:
    return "table2" if figure == "II" else f"figure{figure.replace(', ', '_').replace(' ', '_')}"


def _draw(report: Report, out: Path) -> None:
    # Not at the top: who only reads the figures needs nothing to draw with.
    from weir_lab.grubjoin import pictures

    pictures.draw_optimality(report.optimality, out / "figure7.png")
    pictures.draw_timings(report.timings, out)
    pictures.draw_points(report.points, out)
    pictures.draw_events(report.seen, out / "events.png")
    pictures.draw_drift(report.moments, out / "drift.png")
    pictures.draw_batches(report.batches, out / "batches.png")
