"""Figure 8 of Wang and Rundensteiner 2009, drawn from the simulator, and what lies beyond it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot, which would look for a screen

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from weir_lab.picture import label, save
from weir_lab.psp.adaptation import WAYS_TO_ADAPT, Second
from weir_lab.psp.lengths import Length, Long
from weir_lab.psp.play import Point

_COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3")


def draw_figure8(
    rings: Sequence[Point], aligned: Sequence[Point], coordinated: Sequence[Point], file: Path
) -> None:
    """Figures 8.a to 8.f: response above, state below."""
    figure, axes = plt.subplots(2, 3, figsize=(14, 8), layout="constrained")
    basic = [point for point in rings if point.scheme == "PSP"]
    columns: tuple[tuple[str, Sequence[Point], Callable[[Point], float], str], ...] = (
        ("PSP", basic, lambda p: p.selectivity, "selectivity {:g}"),
        ("ATR", aligned, lambda p: p.value, "segments of {:g} s"),
        ("CTR", coordinated, lambda p: p.value, "{:g} copies"),
    )
    for (name, points, key, says), (upper, lower) in zip(columns, axes.T, strict=True):
        _curves(upper, points, key, says, lambda p: 1e3 * p.response)
        _curves(lower, points, key, says, lambda p: p.state)
        label(upper, "response [ms]", "nodes")
        label(lower, "rows held", "nodes")
        lower.set_ylim(0, 1.15 * max(point.state for point in points))
        upper.set_title(name)
        upper.legend(frameon=False, fontsize=9)
    axes[0][0].set_yscale("log")
    for panel in axes[0][1:]:
        panel.set_ylim(bottom=0)
    figure.suptitle("Wang and Rundensteiner 2009, figures 8.a-8.f: three streams, 50 rows/s, windows of 10 s")
    save(figure, file)


def _curves(
    panel: Axes,
    points: Sequence[Point],
    key: Callable[[Point], float],
    says: str,
    value: Callable[[Point], float],
) -> None:
    for colour, group in zip(_COLOURS, sorted({key(point) for point in points}), strict=False):
        mine = sorted((point for point in points if key(point) == group), key=lambda p: p.nodes)
        panel.plot(
            [p.nodes for p in mine],
            [value(p) for p in mine],
            "o-",
            color=colour,
            ms=4,
            label=says.format(group),
        )


def draw_adaptation(seconds: Sequence[Second], changes: tuple[int, int], file: Path) -> None:
    """Figures 8.g and 8.h: response and nodes over time."""
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(9, 7), layout="constrained", sharex=True)
    for colour, way in zip(_COLOURS, WAYS_TO_ADAPT, strict=False):
        mine = [second for second in seconds if second.way == way]
        said = {"none": "without adaptation", "smoothed": "slices by count"}.get(way, way)
        at = [second.second + 0.5 for second in mine]
        upper.plot(at, [1e3 * second.response for second in mine], color=colour, label=said)
        lower.plot(at, [second.nodes for second in mine], color=colour, label=said)
    upper.set_yscale("log")
    label(upper, "response [ms]", "")
    label(lower, "nodes", "seconds")
    lower.set_ylim(bottom=0)
    for panel in (upper, lower):
        for second in changes:
            panel.axvline(second, color="#444444", linestyle="--", linewidth=1)
    for second, says in zip(changes, ("50 → 100 rows/s", "100 → 50"), strict=True):
        upper.annotate(says, (second, 1.0), xycoords=("data", "axes fraction"), va="top")
    upper.legend(frameon=False)
    figure.suptitle("Wang and Rundensteiner 2009, figures 8.g and 8.h: the rate doubles, and falls back")
    save(figure, file)


def draw_beyond(lengths: Sequence[Length], ways: Sequence[Point], long: Sequence[Long], file: Path) -> None:
    """The best ring predicted and found, joins of more streams, and rings of up to 1 000 nodes."""
    figure, (best, more, far) = plt.subplots(1, 3, figsize=(15, 4.8), layout="constrained")
    best.plot([0, 30], [0, 30], color="#999999", linewidth=1)
    for colour, streams in zip(_COLOURS, sorted({length.streams for length in lengths}), strict=False):
        mine = [length for length in lengths if length.streams == streams]
        best.plot(
            [x.predicted for x in mine], [x.best for x in mine], "o", color=colour, label=f"{streams}-way"
        )
    label(best, "best ring found", "best ring by equation 5")
    best.legend(frameon=False)
    _curves(more, ways, lambda p: p.streams, "{:g}-way", lambda p: 1e3 * p.response)
    more.set_yscale("log")
    label(more, "response, nobody waiting [ms]", "nodes")
    more.legend(frameon=False)
    for colour, join in zip(_COLOURS, dict.fromkeys(ring.join for ring in long), strict=False):
        there = [ring for ring in long if ring.join == join]
        far.plot(
            [x.nodes for x in there],
            [1e3 * x.response for x in there],
            "o-",
            color=colour,
            label=f"T_j {join}",
        )
        far.plot(
            [x.nodes for x in there], [1e3 * x.model for x in there], ":", color=colour, label="equation 5"
        )
    far.set_xscale("log")
    far.set_yscale("log")
    label(far, "response, nobody waiting [ms]", "nodes")
    far.legend(frameon=False)
    figure.suptitle("Wang and Rundensteiner 2009, beyond figure 8: rings of the best length, and much longer")
    save(figure, file)
