"""`weir-lab psp`: figure 8 of Wang and Rundensteiner 2009 and more, as tables, CSV files and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir_lab.aim import Aim
from weir_lab.csv import write_tables
from weir_lab.psp.adaptation import Second, play_adaptation
from weir_lab.psp.aims import aims
from weir_lab.psp.figure8 import play_aligned, play_coordinated, play_rings
from weir_lab.psp.lengths import HUNDREDS, Length, Long, find_best_lengths, play_long_rings, play_many_ways
from weir_lab.psp.play import Point
from weir_lab.psp.settings import COPIES, NODES, SEGMENTS


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done.

    Rings of `nodes` for `ring_seconds` virtual seconds; ATR with `segments` for `atr_seconds` and CTR with
    `copies` for `ctr_seconds` on `routed` nodes; `calm` seconds before the rate doubles, `busy` until
    it falls back and as many after that;
    `rows` input rows for each ring length tried, on rings of `long` nodes and joins of `many` nodes.
    """

    nodes: tuple[int, ...]
    ring_seconds: float
    routed: tuple[int, ...]
    segments: tuple[float, ...]
    atr_seconds: float
    copies: tuple[int, ...]
    ctr_seconds: float
    calm: int
    busy: int
    rows: int
    long: tuple[int, ...]
    many: tuple[int, ...]


FULL = Size(
    nodes=NODES,
    ring_seconds=8.0,
    routed=(4, 8, 12, 16, 19),
    segments=SEGMENTS,
    atr_seconds=600.0,
    copies=COPIES,
    ctr_seconds=10.0,
    calm=20,
    busy=30,
    rows=12,
    long=HUNDREDS,
    many=(2, 3, 4, 6, 8, 10, 12, 14),
)
QUICK = Size(
    nodes=(4, 8, 12, 14, 16, 19),
    ring_seconds=1.5,
    routed=(4, 10, 19),
    segments=(10.0, 20.0),
    atr_seconds=120.0,
    copies=(2, 5),
    ctr_seconds=2.0,
    calm=4,
    busy=14,
    rows=4,
    long=(1, 10, 20, 100, 150, 1000),
    many=(2, 4, 8, 12),
)


@dataclass(frozen=True, slots=True)
class Report:
    """All measurements; the files hold them too."""

    size: Size
    rings: list[Point]
    aligned: list[Point]
    coordinated: list[Point]
    seconds: list[Second]
    lengths: list[Length]
    ways: list[Point]
    long: list[Long]
    aims: list[Aim]


def run(size: Size, out: Path, tell: Callable[[str], None]) -> Report:
    """Run all experiments and write their files; `tell` is called with each step."""
    out.mkdir(parents=True, exist_ok=True)
    points = {
        "rings": play_rings(size.nodes, size.ring_seconds, tell),
        "aligned": play_aligned(size.routed, size.segments, size.atr_seconds, tell),
        "coordinated": play_coordinated(size.routed, size.copies, size.ctr_seconds, tell),
    }
    seconds = play_adaptation(size.calm, size.busy, tell)
    best = find_best_lengths(size.rows, tell)
    many = play_many_ways(size.many, max(2, size.rows // 4), tell)
    long = play_long_rings(size.long, max(2, size.rows // 4), tell)
    closing = aims(
        **points, lengths=best, long=long, ways=many, seconds=seconds, calm=size.calm, busy=size.busy
    )
    report = Report(size, **points, seconds=seconds, lengths=best, ways=many, long=long, aims=closing)
    tell("writing files")
    _write(report, out)
    _draw(report, out)
    return report


def _write(report: Report, out: Path) -> None:
    tables: list[tuple[str, Sequence[Any]]] = [
        ("figure8ab", report.rings),
        ("figure8cd", report.aligned),
        ("figure8ef", report.coordinated),
        ("figure8gh", report.seconds),
        ("best_length", report.lengths),
        ("ways", report.ways),
        ("long_rings", report.long),
        ("aims", report.aims),
    ]
    write_tables(out, tables)


def _draw(report: Report, out: Path) -> None:
    # Not at the top: who only reads the figures needs nothing to draw with.
    from weir_lab.psp.pictures import draw_adaptation, draw_beyond, draw_figure8

    draw_figure8(report.rings, report.aligned, report.coordinated, out / "figure8af.png")
    draw_adaptation(
        report.seconds, (report.size.calm, report.size.calm + report.size.busy), out / "figure8gh.png"
    )
    draw_beyond(report.lengths, report.ways, report.long, out / "beyond.png")
