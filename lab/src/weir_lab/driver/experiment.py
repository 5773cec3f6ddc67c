"""`weir-lab driver`: the experiments of Valsomatzis and Gounaris 2013 as tables, CSV files and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir_lab.aim import Aim
from weir_lab.csv import write_tables
from weir_lab.driver.aims import aims
from weir_lab.driver.decision_time import time_choices
from weir_lab.driver.endless import run_endless
from weir_lab.driver.engine import run_on_engine
from weir_lab.driver.measured import Measured, count_arrivals
from weir_lab.driver.play import FIGURES, Run, compute_curves, is_in_figure, play_data_set, score_runs
from weir_lab.driver.settings import BATCHES, INITIAL, MORE, RATE, SETS, TIMESTAMP, UNEVEN, DataSet
from weir_lab.driver.table2 import compute_table2
from weir_lab.driver.work import count_orders


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done.

    `part` of the data sets I-IV and `uneven_part` of V-VI, `repeats` times, in the first `ahead` of them also
    with the order told beforehand; at `whole` size once with batches of 1M. More streams at `more_part`,
    `more_repeats` times. The engine on `engine_part` of the sets, `engine_repeats` times. The endless stream
    has `endless_keys` keys and so many `endless_batches`.
    """

    part: float
    uneven_part: float
    repeats: int
    ahead: int
    whole: bool
    more_part: float
    more_repeats: int
    engine_part: float
    engine_repeats: int
    endless_keys: int
    endless_batches: int


FULL = Size(
    part=0.05,
    uneven_part=0.1,
    repeats=10,
    ahead=5,
    whole=True,
    more_part=0.3,
    more_repeats=3,
    engine_part=0.1,
    engine_repeats=4,
    endless_keys=4_000,
    endless_batches=40,
)
QUICK = Size(
    part=0.01,
    uneven_part=0.04,
    repeats=2,
    ahead=1,
    whole=False,
    more_part=0.02,
    more_repeats=1,
    engine_part=0.02,
    engine_repeats=1,
    endless_keys=500,
    endless_batches=16,
)
# Batches of 1M time units.
_LONG = BATCHES[1:]
# Whole streams fill a third of a gigabyte for each policy.
_HEADLINES = (TIMESTAMP, INITIAL, RATE)


@dataclass(frozen=True, slots=True)
class Report:
    """All measurements; the files hold them too."""

    size: Size
    measured: Measured
    aims: list[Aim]


def run(size: Size, out: Path, tell: Callable[[str], None]) -> Report:
    """Run all experiments and write their files; `tell` is called with each step."""
    out.mkdir(parents=True, exist_ok=True)
    measured = _measured(size, tell)
    report = Report(size, measured, aims(measured))
    _write(report, out)
    _draw(report, out)
    return report


def _measured(size: Size, tell: Callable[[str], None]) -> Measured:
    sets = [data_set.scaled(size.uneven_part if data_set.name in UNEVEN else size.part) for data_set in SETS]
    more = [data_set.scaled(size.more_part) for data_set in MORE]
    played = [run for data_set in sets for run in _played(data_set, BATCHES, size.repeats, size.ahead, tell)]
    whole = [
        f
        for data_set in SETS
        if size.whole
        for f in play_data_set(data_set, _LONG, 1, False, tell, _HEADLINES)
    ]
    longer = [
        f for data_set in more for f in _played(data_set, _LONG, size.more_repeats, size.more_repeats, tell)
    ]
    return Measured(
        printed=compute_table2(tell),
        arrived=[arrivals for data_set in sets for arrivals in count_arrivals(data_set)],
        scores=score_runs(played),
        whole=score_runs(whole),
        curves=compute_curves(played),
        counted=[count for data_set in sets for count in count_orders(data_set, BATCHES, True, tell)],
        more=score_runs(longer),
        more_curves=compute_curves(longer),
        # Of five streams there are 120 orders.
        more_counted=[
            f for data_set in more for f in count_orders(data_set, _LONG, len(data_set.rows) < 5, tell)
        ],
        engine=[
            f
            for data_set in SETS
            for f in run_on_engine(data_set.scaled(size.engine_part), _LONG[0], size.engine_repeats, tell)
        ],
        endless=list(run_endless(size.endless_keys, size.endless_batches, size.engine_repeats, tell)),
        choices=list(time_choices()),
    )


def _played(
    data_set: DataSet, batches: Sequence[int], repeats: int, ahead: int, tell: Callable[[str], None]
) -> Iterator[Run]:
    yield from play_data_set(data_set, batches, repeats, False, tell)
    yield from play_data_set(data_set, batches, ahead, True, tell)


def _write(report: Report, out: Path) -> None:
    measured = report.measured
    tables: list[tuple[str, Sequence[Any]]] = [
        ("table2", measured.printed),
        ("table4_5", measured.scores),
        ("table4_5_whole_size", measured.whole),
        ("figure5", measured.arrived),
        *((f"figure{n}", [curve for curve in measured.curves if is_in_figure(curve, n)]) for n in FIGURES),
        ("work", measured.counted),
        ("streams", measured.more),
        ("streams_curves", measured.more_curves),
        ("streams_work", measured.more_counted),
        ("engine", [*measured.engine, *measured.endless]),
        ("choosing", measured.choices),
        ("aims", report.aims),
    ]
    write_tables(out, tables)


def _draw(report: Report, out: Path) -> None:
    # Not at the top: who only reads the figures needs nothing to draw with.
    from weir_lab.driver.pictures import (
        draw_arrivals,
        draw_courses,
        draw_engine,
        draw_streams,
        draw_work,
    )

    measured = report.measured
    draw_arrivals(measured.arrived, out / "figure5.png")
    for number in FIGURES:
        draw_courses(number, measured.curves, out / f"figure{number}.png")
    draw_work(measured.scores, measured.counted, out / "work.png")
    draw_streams(measured.more_curves, out / "streams.png")
    draw_engine([*measured.engine, *measured.endless], out / "engine.png")
