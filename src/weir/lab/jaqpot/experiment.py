"""`weir lab jaqpot`: all of 000's experiments, as tables, CSV files and pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from weir.lab.csv import write_csv
from weir.lab.jaqpot.aims import Aim, aims
from weir.lab.jaqpot.analysis import SIZES, Analysis, analyses
from weir.lab.jaqpot.freshness import Spent, Staleness, spent, staleness
from weir.lab.jaqpot.sensors import BUDGETS, Mark, readings, sensors, stale_sensors
from weir.lab.jaqpot.settings import FACTORS, SHAPES, settings
from weir.lab.jaqpot.shift import Minute, shifts
from weir.lab.jaqpot.throughput import Point, throughput, timed_throughput


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done.

    `settings` per shape, at each share of `resources`, measured for so many `windows`; figure 9 for each of
    `factors`, and `covers` settings for 9.d; figure 6 with `seeds`, a minute of it lasting `minute` virtual
    seconds; figure 8 from `starts` places for `sensor_seconds`; `plans` random plans per number of streams.
    """

    settings: int
    resources: tuple[float, ...]
    windows: float
    factors: tuple[float, ...]
    covers: int
    seeds: int
    minute: float
    starts: int
    sensor_seconds: float
    budgets: tuple[float, ...]
    plans: int


FULL = Size(
    settings=3,
    resources=(0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
    windows=2.0,
    factors=FACTORS,
    covers=100,
    seeds=2,
    minute=0.5,
    starts=3,
    sensor_seconds=10.0,
    budgets=BUDGETS,
    plans=60,
)
QUICK = Size(
    settings=1,
    resources=(0.6,),
    windows=0.7,
    factors=(1.5,),
    covers=10,
    seeds=1,
    minute=0.1,
    starts=1,
    sensor_seconds=2.0,
    budgets=BUDGETS[:1],
    plans=6,
)


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found; the files hold it too."""

    size: Size
    source: str
    points: list[Point]
    timed: list[Point]
    stale: list[Staleness]
    spent: list[Spent]
    minutes: list[Minute]
    analyses: list[Analysis]
    marks: list[Mark]
    aims: list[Aim]


def run(size: Size, out: Path, data: Path | None, tell: Callable[[str], None]) -> Report:
    """Do everything and write it into a folder; `data` are sensor readings, `tell` hears what is done."""
    found = readings(data)
    out.mkdir(parents=True, exist_ok=True)
    points = [
        point
        for shape in SHAPES
        for setting in settings(shape, size.settings)
        for point in throughput(setting, size.resources, size.windows, tell)
    ]
    timed = timed_throughput(settings("linear", 1)[0], size.resources, size.windows, tell)
    stale = [
        one
        for shape in SHAPES
        for setting in settings(shape, size.settings)
        for one in staleness(setting, size.factors, tell)
    ]
    stale += stale_sensors(found, size.starts, size.factors, tell)
    minutes = [
        minute
        for shape in SHAPES
        for seed in range(size.seeds)
        for minute in shifts(shape, seed, size.minute, tell)
    ]
    marks = list(sensors(found, size.starts, size.sensor_seconds, size.budgets, tell))
    tell("section 5.4")
    timings = [one for streams in SIZES for one in analyses(streams, size.plans)]
    covers = spent(size.covers)
    report = Report(
        size=size,
        source=found.source,
        points=points,
        timed=timed,
        stale=stale,
        spent=covers,
        minutes=minutes,
        analyses=timings,
        marks=marks,
        aims=aims(points, timed, stale, covers, minutes, timings, marks),
    )
    _write(report, out)
    _draw(report, out)
    return report


def _write(report: Report, out: Path) -> None:
    for name, rows in (
        ("figure6", report.minutes),
        ("figure7", report.points),
        ("figure7_time_windows", report.timed),
        ("figure8", report.marks),
        ("figure9_stale", report.stale),
        ("figure9_spent", report.spent),
        ("section5.4", report.analyses),
        ("aims", report.aims),
    ):
        write_csv(out / f"{name}.csv", [asdict(row) for row in rows])


def _draw(report: Report, out: Path) -> None:
    # Not at the top: who only reads the figures needs nothing to draw with.
    from weir.lab.jaqpot.pictures import (
        draw_freshness,
        draw_sensors,
        draw_shifts,
        draw_throughput,
        draw_timed,
    )

    draw_throughput(report.points, out / "figure7.png")
    draw_timed(report.timed, out / "figure7_time_windows.png")
    draw_freshness(report.stale, report.spent, out / "figure9.png")
    draw_shifts(report.minutes, out / "figure6.png")
    draw_sensors(report.marks, report.source, out / "figure8.png")
