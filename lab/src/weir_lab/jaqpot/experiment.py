"""`weir-lab jaqpot`: the experiments of Mukherji et al. 2011 as tables, CSV files and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir_lab.aim import Aim
from weir_lab.csv import write_tables
from weir_lab.jaqpot.aims import aims
from weir_lab.jaqpot.analysis import SIZES, Analysis, time_analyses
from weir_lab.jaqpot.freshness import Spent, Staleness, measure_covers, measure_staleness
from weir_lab.jaqpot.quartiles import Spread, summarise_spreads
from weir_lab.jaqpot.sensors import BUDGETS, Mark, load_readings, measure_stale_sensors, play_sensors
from weir_lab.jaqpot.settings import FACTORS, SHAPES, draw_settings
from weir_lab.jaqpot.shift import Minute, play_shifts
from weir_lab.jaqpot.throughput import (
    Point,
    Prediction,
    forecast_table3,
    measure_throughput,
    measure_timed_throughput,
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done.

    `settings` per shape, at each share of `resources`, measured for so many `windows` (those of time at the
    shares `timed`); figure 9 for each of `factors` in the first `stale` of them, `covers` settings for 9.d
    and for what the model predicts; figure 6 with `seeds`, a minute of it lasting `minute` virtual seconds;
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
    """All measurements; the files hold them too."""

    size: Size
    source: str
    points: list[Point]
    predicted: list[Prediction]
    timed: list[Point]
    stale: list[Staleness]
    spent: list[Spent]
    minutes: list[Minute]
    analyses: list[Analysis]
    marks: list[Mark]
    spreads: list[Spread]
    aims: list[Aim]


def run(size: Size, out: Path, data: Path | None, tell: Callable[[str], None]) -> Report:
    """Run all experiments and write their files; `data` are sensor readings, `tell` hears of each step."""
    sensed = load_readings(data)
    out.mkdir(parents=True, exist_ok=True)
    played = [setting for shape in SHAPES for setting in draw_settings(shape, size.settings)]
    few = [setting for setting in played if setting.number < size.stale]
    points = [
        point
        for setting in played
        for point in measure_throughput(setting, size.resources, size.windows, tell)
    ]
    timed = measure_timed_throughput(played[0], size.timed, size.windows, tell)
    stale = [case for setting in few for case in measure_staleness(setting, size.factors, tell)]
    stale += measure_stale_sensors(sensed, size.stale, size.factors, tell)
    minutes = [
        minute
        for shape in SHAPES
        for seed in range(size.seeds)
        for minute in play_shifts(shape, seed, size.minute, tell)
    ]
    marks = list(play_sensors(sensed, size.starts, size.sensor_seconds, size.budgets, tell))
    tell("section 5.4")
    timings = [timing for streams in SIZES for timing in time_analyses(streams, size.plans)]
    covers, told = measure_covers(size.covers), forecast_table3(size.covers, size.resources)
    report = Report(
        size=size,
        source=sensed.source,
        points=points,
        predicted=told,
        timed=timed,
        stale=stale,
        spent=covers,
        minutes=minutes,
        analyses=timings,
        marks=marks,
        spreads=summarise_spreads(points, minutes, marks, stale),
        aims=aims(points, told, timed, stale, covers, minutes, timings, marks),
    )
    _write(report, out)
    _draw(report, out)
    return report


def _write(report: Report, out: Path) -> None:
    tables: list[tuple[str, Sequence[Any]]] = [
        ("figure6", report.minutes),
        ("figure7", report.points),
        ("figure7_predicted", report.predicted),
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
