"""`weir-lab jaqpot`: the experiments of Mukherji et al. 2011 as tables, CSV files and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir_lab.aim import Aim
from weir_lab.csv import write_tables
from weir_lab.jaqpot.aims import aims
from weir_lab.jaqpot.analysis import SIZES, Analysis, analyses
from weir_lab.jaqpot.freshness import Spent, Staleness, spent, staleness
from weir_lab.jaqpot.sensors import BUDGETS, Mark, readings, sensors, stale_sensors
from weir_lab.jaqpot.settings import FACTORS, SHAPES, settings
from weir_lab.jaqpot.shift import Minute, shifts
from weir_lab.jaqpot.spread import Spread, spreads
from weir_lab.jaqpot.throughput import Foretold, Point, foretold, throughput, timed_throughput


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done.

    `settings` per shape, at each share of `resources`, measured for so many `windows` (those of time at the
    shares `timed`); figure 9 for each of `factors` in the first `stale` of them, `covers` settings for 9.d
    and for what the model foretells; figure 6 with `seeds`, a minute of it lasting `minute` virtual seconds;
    figure 8 from `starts` places for `sensor_seconds`; `plans` random plans per number of streams.
    """

    settings: int
    resources: tuple[float, ...]
    timed: tuple[float, ...]
    windows: float
    factors: tuple[float, ...]
    stale: int
    covers: int
    seeds: int
    minute: float
    starts: int
    sensor_seconds: float
    budgets: tuple[float, ...]
    plans: int


FULL = Size(
    settings=3,
    resources=(0.2, 0.4, 0.6, 1.0),
    timed=(0.4,),
    windows=0.2,
    factors=FACTORS,
    stale=2,
    covers=100,
    seeds=3,
    minute=0.7,
    starts=3,
    sensor_seconds=8.0,
    budgets=BUDGETS,
    plans=60,
)
QUICK = Size(
    settings=1,
    resources=(0.6,),
    timed=(0.6,),
    windows=0.25,
    factors=(1.5,),
    stale=1,
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
    foretold: list[Foretold]
    timed: list[Point]
    stale: list[Staleness]
    spent: list[Spent]
    minutes: list[Minute]
    analyses: list[Analysis]
    marks: list[Mark]
    spreads: list[Spread]
    aims: list[Aim]


def run(size: Size, out: Path, data: Path | None, tell: Callable[[str], None]) -> Report:
    """Do everything and write it into a folder; `data` are sensor readings, `tell` hears what is done."""
    found = readings(data)
    out.mkdir(parents=True, exist_ok=True)
    played = [setting for shape in SHAPES for setting in settings(shape, size.settings)]
    few = [setting for setting in played if setting.number < size.stale]
    points = [
        point for setting in played for point in throughput(setting, size.resources, size.windows, tell)
    ]
    timed = timed_throughput(played[0], size.timed, size.windows, tell)
    stale = [one for setting in few for one in staleness(setting, size.factors, tell)]
    stale += stale_sensors(found, size.stale, size.factors, tell)
    minutes = [
        minute
        for shape in SHAPES
        for seed in range(size.seeds)
        for minute in shifts(shape, seed, size.minute, tell)
    ]
    marks = list(sensors(found, size.starts, size.sensor_seconds, size.budgets, tell))
    tell("section 5.4")
    timings = [one for streams in SIZES for one in analyses(streams, size.plans)]
    covers, told = spent(size.covers), foretold(size.covers, size.resources)
    report = Report(
        size=size,
        source=found.source,
        points=points,
        foretold=told,
        timed=timed,
        stale=stale,
        spent=covers,
        minutes=minutes,
        analyses=timings,
        marks=marks,
        spreads=spreads(points, minutes, marks, stale),
        aims=aims(points, told, timed, stale, covers, minutes, timings, marks),
    )
    _write(report, out)
    _draw(report, out)
    return report


def _write(report: Report, out: Path) -> None:
    tables: list[tuple[str, Sequence[Any]]] = [
        ("figure6", report.minutes),
        ("figure7", report.points),
        ("figure7_foretold", report.foretold),
        ("figure7_time_windows", report.timed),
        ("figure8", report.marks),
        ("figure9_stale", report.stale),
        ("figure9_spent", report.spent),
        ("section5.4", report.analyses),
        ("quartiles", report.spreads),
        ("aims", report.aims),
    ]
    write_tables(out, tables)


def _draw(report: Report, out: Path) -> None:
    # Not at the top: who only reads the figures needs nothing to draw with.
    from weir_lab.jaqpot.pictures import (
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
