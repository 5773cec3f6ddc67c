"""The paper's figures 7 to 16 and table II, and the cases of our own, drawn from what we measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot, which would look for a screen

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from weir_lab.grubjoin.batches import BatchCost
from weir_lab.grubjoin.decide import BETTER, Optimality, Timing
from weir_lab.grubjoin.drift import DRIFTERS, Moment
from weir_lab.grubjoin.events import Seen
from weir_lab.grubjoin.output import SCENARIOS, WAYS, Point, gain
from weir_lab.grubjoin.play import FROZEN, HARVEST, RANDOM_DROP
from weir_lab.picture import label, save

_LOOKS = {HARVEST: ("#4c72b0", "o", "-"), RANDOM_DROP: ("#c44e52", "s", "--"), FROZEN: ("#8c8c8c", "v", ":")}
_COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#8172b3", "#c44e52")
_OUTPUT = "results a second, in the paper's rows"


def draw_optimality(shares: Sequence[Optimality], file: Path) -> None:
    """Figure 7."""
    figure, panel = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
    for colour, metric in zip(_COLOURS, ("output", "output per cost", "delta", BETTER), strict=False):
        mine = [share for share in shares if share.metric == metric]
        panel.plot([o.throttle for o in mine], [o.mean for o in mine], "o-", color=colour, label=metric)
    panel.axhline(0.98, color="#cccccc", linewidth=1, zorder=0)
    label(panel, "share of the best output", "throttle fraction z")
    panel.legend(frameon=False)
    panel.set_title(f"Gedik et al. 2007, figure 7: mean of {max(o.problems for o in shares)} problems")
    save(figure, file)


def draw_timings(timings: Sequence[Timing], out: Path) -> None:
    """Figures 8, 9 and 10."""
    for name, title in (
        ("8", "over the ranges of a window, z = 0.25"),
        ("9", "over z, 20 ranges"),
        ("10", "three streams, 20 ranges"),
    ):
        figure, panel = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
        mine = [timing for timing in timings if timing.figure == name]
        for place, (search, streams) in enumerate(
            dict.fromkeys((timing.search, timing.streams) for timing in mine)
        ):
            line = [timing for timing in mine if (timing.search, timing.streams) == (search, streams)]
            panel.plot(
                [timing.ranges if name == "8" else timing.throttle for timing in line],
                [timing.milliseconds for timing in line],
                "o-" if place < len(_COLOURS) else "s--",
                color=_COLOURS[place % len(_COLOURS)],
                label=f"{search}, m = {streams}",
            )
        label(panel, "CPU milliseconds (median)", "ranges" if name == "8" else "throttle fraction z")
        panel.set_yscale("log")
        panel.legend(frameon=False, fontsize=8)
        panel.set_title(f"Gedik et al. 2007, figure {name}: time to decide, {title}")
        save(figure, out / f"figure{name}.png")


def draw_points(points: Sequence[Point], out: Path) -> None:
    """Figures 11 to 16 and table II."""
    _both(points, "11", "rows a second and stream", "output over the input rate", out / "figure11.png")
    _both(points, "12", "deviation κ3", "output over the deviation, 200 rows/s", out / "figure12.png")
    _bars(points, out / "figure13.png")
    _lines(points, "14", "seconds of a basic window", "output over the basic window", out / "figure14.png")
    _lines(points, "15", "seconds between adaptations", "output over the period", out / "figure15.png")
    figure, panel = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
    _series(panel, points, "16", lambda p: p.dropped)
    label(panel, "rows dropped", "seconds of buffer (0: ten rows)")
    panel.yaxis.set_major_formatter(PercentFormatter(1))
    panel.legend(frameon=False)
    panel.set_title("Gedik et al. 2007, figure 16: drops in the 20 s after z = 1")
    save(figure, out / "figure16.png")
    _both(points, "II", "cost of a comparison", "output over the cost of a comparison", out / "table2.png")


def _both(points: Sequence[Point], name: str, over: str, title: str, file: Path) -> None:
    series = list(dict.fromkeys(p.series for p in points if p.figure == name))
    figure, axes = plt.subplots(
        1, len(series), figsize=(0.5 + 5.6 * len(series), 4.6), layout="constrained", squeeze=False
    )
    for panel, line_name in zip(axes[0], series, strict=True):
        for way in WAYS:
            mine = [p for p in points if (p.figure, p.series, p.way) == (name, line_name, way)]
            colour, marker, line = _LOOKS[way]
            _quartiles(panel, mine, lambda p: p.output, colour, marker + line, way)
        for x in sorted({p.x for p in points if p.figure == name}):
            top = max(p.output for p in points if (p.figure, p.series, p.x) == (name, line_name, x))
            panel.annotate(
                f"{gain(points, name, line_name, x):+.0%}", (x, top), textcoords="offset points",
                xytext=(0, 6), ha="center", fontsize=8,
            )  # fmt: skip
        label(panel, _OUTPUT, over)
        panel.set_ylim(bottom=0)
        panel.margins(y=0.15)
        panel.set_title(line_name)
    axes[0][0].legend(frameon=False)
    what = "table II" if name == "II" else f"figure {name}"
    apart = "; " if len(series) > 1 else "\n"
    figure.suptitle(f"Gedik et al. 2007, {what}: {title}{apart}medians and quartiles over seeds")
    save(figure, file)


def _bars(points: Sequence[Point], file: Path) -> None:
    """Figure 13."""
    figure, axes = plt.subplots(1, len(SCENARIOS), figsize=(11, 4.6), layout="constrained")
    counts = sorted({p.x for p in points if p.figure == "13"})
    for panel, scenario in zip(axes, SCENARIOS, strict=True):
        for i, way in enumerate(WAYS):
            outputs = [
                [p.output for p in points if (p.figure, p.series, p.way, p.x) == ("13", scenario, way, x)]
                for x in counts
            ]
            places = np.arange(len(counts)) + 0.38 * (i - 0.5)
            panel.bar(
                places, [np.median(repeats) for repeats in outputs], 0.36, color=_LOOKS[way][0], label=way
            )
        for place, x in enumerate(counts):
            panel.annotate(
                f"{gain(points, '13', scenario, x):+.0%}", (place, 1), xycoords=("data", "axes fraction"),
                ha="center", fontsize=9, va="top",
            )  # fmt: skip
        panel.set_xticks(range(len(counts)), [f"m = {x:g}" for x in counts])
        label(panel, _OUTPUT, "streams")
        panel.margins(y=0.15)
        panel.set_title(scenario)
    axes[0].legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0.92))
    figure.suptitle("Gedik et al. 2007, figure 13: output over the number of streams, 100 rows/s")
    save(figure, file)


def _lines(points: Sequence[Point], name: str, over: str, title: str, file: Path) -> None:
    figure, panel = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
    _series(panel, points, name, lambda p: p.output)
    label(panel, _OUTPUT, over)
    if name == "15":
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)
    panel.legend(frameon=False)
    panel.set_title(f"Gedik et al. 2007, figure {name}: {title} (GrubJoin)")
    save(figure, file)


def _series(panel: Axes, points: Sequence[Point], name: str, what: Callable[[Point], float]) -> None:
    series = list(dict.fromkeys(p.series for p in points if p.figure == name))
    for colour, line_name in zip(_COLOURS, series, strict=False):
        mine = [p for p in points if (p.figure, p.series) == (name, line_name)]
        _quartiles(panel, mine, what, colour, "o-", line_name)


def _quartiles(
    panel: Axes, points: Sequence[Point], what: Callable[[Point], float], colour: str, style: str, name: str
) -> None:
    over = sorted({p.x for p in points})
    samples = [[what(p) for p in points if p.x == x] for x in over]
    low, middle, high = (np.array([np.quantile(sample, q) for sample in samples]) for q in (0.25, 0.5, 0.75))
    panel.errorbar(
        over, middle, yerr=[middle - low, high - middle], fmt=style, color=colour, label=name,
        markersize=5, elinewidth=0.9, capsize=2,
    )  # fmt: skip


def draw_events(events: Sequence[Seen], file: Path) -> None:
    """Planted events found, over the throttle fraction."""
    figure, panel = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
    for way in WAYS:
        colour, marker, line = _LOOKS[way]
        throttles = sorted({seen.throttle for seen in events})
        shares = [
            np.median([o.detected for o in events if (o.way, o.throttle) == (way, z)]) for z in throttles
        ]
        panel.plot(throttles, shares, marker + line, color=colour, label=way)
    label(panel, "planted events found", "throttle fraction z")
    panel.yaxis.set_major_formatter(PercentFormatter(1))
    panel.legend(frameon=False)
    panel.set_title("cosine join of two feeds of 512-dimensional vectors")
    save(figure, file)


def draw_drift(moments: Sequence[Moment], file: Path) -> None:
    """Output over time while the lags move."""
    figure, panel = plt.subplots(figsize=(8, 4.6), layout="constrained")
    for way in DRIFTERS:
        colour, marker, line = _LOOKS[way]
        times = sorted({moment.time for moment in moments})
        outputs = [np.median([o.output for o in moments if (o.way, o.time) == (way, t)]) for t in times]
        panel.plot(times, outputs, marker + line, color=colour, label=way, markersize=4)
    during = [moment.time for moment in moments if moment.phase == "during"]
    panel.axvspan(min(during) - 5, max(during), color="#eeeeee", zorder=0)
    label(panel, _OUTPUT, "virtual seconds; lags move in the grey time")
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False)
    panel.set_title("a lag that drifts")
    save(figure, file)


def draw_batches(costs: Sequence[BatchCost], file: Path) -> None:
    """CPU of a batch over the throttle fraction, beside what it may be."""
    figure, panel = plt.subplots(figsize=(6.5, 4.8), layout="constrained")
    for colour, kind in zip(_COLOURS, dict.fromkeys(cost.kind for cost in costs), strict=False):
        mine = [cost for cost in costs if cost.kind == kind]
        panel.plot([o.throttle for o in mine], [o.cpu for o in mine], "o-", color=colour, label=kind)
    panel.plot([0, 1], [0.05, 1.2], color="#222222", linewidth=1, linestyle=":", label="1.15 z + 0.05")
    label(panel, "CPU, share of the full join's", "throttle fraction z")
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False, fontsize=9)
    panel.set_title("what a throttled batch costs the kernel")
    save(figure, file)
