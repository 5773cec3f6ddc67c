"""`weir-lab driver`: the experiments of Valsomatzis and Gounaris 2013 as tables, CSV files and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir_lab.aim import Aim
from weir_lab.csv import write_tables
from weir_lab.driver.aims import aims
from weir_lab.driver.choosing import choices
from weir_lab.driver.endless import endless
from weir_lab.driver.engine import on_engine
from weir_lab.driver.measured import Measured, arrived
from weir_lab.driver.play import FIGURES, Run, curves, is_in, runs, scores
from weir_lab.driver.settings import BATCHES, INITIAL, MORE, RATE, SETS, TIMESTAMP, UNEVEN, DataSet
from weir_lab.driver.table2 import table2
from weir_lab.driver.work import counted


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done.

    `part` of the data sets I-IV and `uneven_part` of V-VI, `repeats` times, in the first `ahead` of them also
    with the order told beforehand; at `whole` size once with batches of 1M. More streams at `more_part`,
    `more_repeats` times. The engine on `engine_part` of the sets, `engine_repeats` times, and on the smallest
    of those named `interleaved` with the policies that interleave rows. The endless stream has
    `endless_keys` keys and so many `endless_batches`.
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
    interleaved: tuple[str, ...]
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
    interleaved=("I", "II", "III", "IV", "V", "VI"),
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
    interleaved=("VI",),
    endless_keys=500,
    endless_batches=16,
)
# One shared key.
_SMALLEST = 0.001
_SMALL_KEYS = 100
# Batches of 1M time units.
_LONG = BATCHES[1:]
# Whole streams fill a third of a gigabyte for each policy.
_HEADLINES = (TIMESTAMP, INITIAL, RATE)


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found; the files hold it too."""

    size: Size
    measured: Measured
    aims: list[Aim]


def run(size: Size, out: Path, tell: Callable[[str], None]) -> Report:
    """Do everything and write it into a folder; `tell` hears what is done."""
    out.mkdir(parents=True, exist_ok=True)
    measured = _measured(size, tell)
    report = Report(size, measured, aims(measured))
    _write(report, out)
    _draw(report, out)
    return report


def _measured(size: Size, tell: Callable[[str], None]) -> Measured:
    sets = [one.scaled(size.uneven_part if one.name in UNEVEN else size.part) for one in SETS]
    more = [one.scaled(size.more_part) for one in MORE]
    played = [found for one in sets for found in _played(one, BATCHES, size.repeats, size.ahead, tell)]
    whole = [f for one in SETS if size.whole for f in runs(one, _LONG, 1, False, tell, _HEADLINES)]
    longer = [f for one in more for f in _played(one, _LONG, size.more_repeats, size.more_repeats, tell)]
    small = [one.scaled(_SMALLEST) for one in SETS if one.name in size.interleaved]
    return Measured(
        printed=table2(tell),
        arrived=[found for one in sets for found in arrived(one)],
        scores=scores(played),
        whole=scores(whole),
        curves=curves(played),
        counted=[found for one in sets for found in counted(one, BATCHES, True, tell)],
        more=scores(longer),
        more_curves=curves(longer),
        # Of five streams there are 120 orders.
        more_counted=[f for one in more for f in counted(one, _LONG, len(one.rows) < 5, tell)],
        engine=[
            f
            for one in SETS
            for f in on_engine(one.scaled(size.engine_part), _LONG[0], size.engine_repeats, False, tell)
        ],
        interleaved=[f for one in small for f in on_engine(one, _LONG[0], 1, True, tell)],
        endless=[
            *endless(size.endless_keys, size.endless_batches, size.engine_repeats, False, tell),
            *endless(_SMALL_KEYS, size.endless_batches // 2, 1, True, tell),
        ],
        choices=list(choices()),
    )


def _played(
    data_set: DataSet, batches: Sequence[int], repeats: int, ahead: int, tell: Callable[[str], None]
) -> Iterator[Run]:
    yield from runs(data_set, batches, repeats, False, tell)
    yield from runs(data_set, batches, ahead, True, tell)


def _write(report: Report, out: Path) -> None:
    found = report.measured
    tables: list[tuple[str, Sequence[Any]]] = [
        ("table2", found.printed),
        ("table4_5", found.scores),
        ("table4_5_whole_size", found.whole),
        ("figure5", found.arrived),
        *((f"figure{n}", [one for one in found.curves if is_in(one, n)]) for n in FIGURES),
        ("work", found.counted),
        ("streams", found.more),
        ("streams_curves", found.more_curves),
        ("streams_work", found.more_counted),
        ("engine", [*found.engine, *found.endless]),
        ("engine_interleaved", found.interleaved),
        ("choosing", found.choices),
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

    found = report.measured
    draw_arrivals(found.arrived, out / "figure5.png")
    for number in FIGURES:
        draw_courses(number, found.curves, out / f"figure{number}.png")
    draw_work(found.scores, found.counted, out / "work.png")
    draw_streams(found.more_curves, out / "streams.png")
    draw_engine([*found.engine, *found.endless], out / "engine.png")
