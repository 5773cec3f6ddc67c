"""The paper's figures 5 to 8, drawn from what we measured, and ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot, which would look for a screen

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from weir_lab.driver.aims import LONG
from weir_lab.driver.engine import FIXED, Batches
from weir_lab.driver.measured import Arrived
from weir_lab.driver.play import FIGURES, HALVES, Curve, Score, is_in_figure
from weir_lab.driver.settings import (
    BATCH_NAMES,
    COMPARED,
    CONSUMPTION,
    INITIAL,
    LEAST,
    RATE,
    ROUND_ROBIN,
    TABLE_4,
    TABLE_5,
    TIMESTAMP,
    Figures,
    paper,
)
from weir_lab.driver.work import Counted
from weir_lab.picture import label, save

_LOOKS = {
    TIMESTAMP: ("#222222", "-"),
    ROUND_ROBIN: ("#8c8c8c", ":"),
    CONSUMPTION: ("#dd8452", "-."),
    INITIAL: ("#4c72b0", "-"),
    RATE: ("#55a868", "--"),
    LEAST: ("#8172b3", "-."),
    FIXED: ("#cccccc", "-"),
}
_STREAMS = ("#4c72b0", "#55a868", "#c44e52")


def draw_arrivals(arrivals: Sequence[Arrived], file: Path) -> None:
    """Figure 5."""
    figure, axes = plt.subplots(2, 3, figsize=(14, 7), layout="constrained", sharex=True)
    names = list(dict.fromkeys(arrival.data_set for arrival in arrivals))
    for panel, name in zip(axes.flat, names, strict=True):
        mine = [arrival for arrival in arrivals if arrival.data_set == name]
        for stream, colour in zip(dict.fromkeys(arrival.stream for arrival in mine), _STREAMS, strict=True):
            here = [arrival for arrival in mine if arrival.stream == stream]
            times, rates = [arrival.time for arrival in here], [arrival.rate for arrival in here]
            panel.step(
                times, rates, where="post", color=colour, label=f"{stream}: {here[0].arrivals}", alpha=0.9
            )
        panel.set_title(f"data set {name}")
        label(panel, "rows per 1 000 time units", "of the time")
        if max(arrival.rate for arrival in mine) > 500:
            panel.set_yscale("log")
            panel.set_ylim(0.1, 1e5)
        else:
            panel.set_ylim(0, 350)
        panel.legend(frameon=False, fontsize=9, loc="upper right")
        panel.xaxis.set_major_formatter(PercentFormatter(1))
    figure.suptitle("Valsomatzis and Gounaris 2013, figure 5: arrivals (b-model on a logarithmic axis)")
    save(figure, file)


def draw_courses(number: int, curves: Sequence[Curve], file: Path) -> None:
    """Figures 6, 7 and 8, with the paper's table 5 as crosses."""
    names, half = FIGURES[number]
    mine = [curve for curve in curves if is_in_figure(curve, number)]
    figure, axes = plt.subplots(2, 3, figsize=(14, 8), layout="constrained", sharex=True, sharey=True)
    for line, batch in zip(axes, BATCH_NAMES.values(), strict=True):
        for panel, name in zip(line, names, strict=True):
            _courses(panel, [c for c in mine if (c.data_set, c.batch) == (name, batch)])
            for policy in COMPARED:
                said = paper(TABLE_5, name, policy, batch)
                if said is not None:
                    panel.plot(0.5, said, "x", color=_LOOKS[policy][0], markersize=8, markeredgewidth=2)
            panel.set_title(f"data set {name}, batches of {batch}")
    axes[0][2].legend(frameon=False, fontsize=9, loc="lower right")
    since, until = HALVES[half]
    figure.suptitle(
        f"Valsomatzis and Gounaris 2013, figure {number}: results over time, tuple at a time, "
        f"batches from {since:.0%} to {until:.0%} "
        "of the run (crosses: table 5 of the paper, same colours)"
    )
    save(figure, file)


def draw_streams(curves: Sequence[Curve], file: Path) -> None:
    """The same for four and five streams."""
    names = list(dict.fromkeys(curve.data_set for curve in curves))
    figure, (axes,) = plt.subplots(
        1, len(names), figsize=(6 * len(names), 4.6), layout="constrained", sharey=True, squeeze=False
    )
    for panel, name in zip(axes, names, strict=True):
        _courses(panel, [c for c in curves if (c.data_set, c.half) == (name, "all")])
        panel.set_title(name)
    axes[-1].legend(frameon=False, fontsize=9, loc="lower right")
    figure.suptitle(f"beyond the paper: more streams, batches of {LONG}")
    save(figure, file)


def _courses(panel: Axes, curves: Sequence[Curve]) -> None:
    for policy in COMPARED:
        here = [curve for curve in curves if curve.policy == policy]
        if here:
            colour, line = _LOOKS[policy]
            times, shares = [curve.time for curve in here], [curve.share for curve in here]
            panel.plot(times, shares, color=colour, linestyle=line, label=policy, linewidth=2)
    panel.axvline(0.5, color="#cccccc", linewidth=1, zorder=0)
    label(panel, "of the batch's results", "time, timestamp-based = 1")
    panel.set_xlim(0, 1.2)
    panel.set_ylim(0, 1.03)
    panel.yaxis.set_major_formatter(PercentFormatter(1))


def draw_work(scores: Sequence[Score], counted: Sequence[Counted], file: Path) -> None:
    """How much of tables 4 and 5 is work, and how much choosing and changing drivers row by row."""
    figure, axes = plt.subplots(2, 2, figsize=(14, 8), layout="constrained", sharex=True)
    for line, (of, by_work, table) in zip(
        axes, (("time", "beside_timestamp", TABLE_4), ("early", "early", TABLE_5)), strict=True
    ):
        for panel, policy in zip(line, (INITIAL, RATE), strict=True):
            _bars(panel, policy, scores, counted, of, by_work, table)
            title = "running time" if of == "time" else "results at half of the time"
            panel.set_title(f"{policy}: {title}, timestamp = 1, batches of {LONG}")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle("tables 4 and 5: with the choosing, without it, and by counted work")
    save(figure, file)


def _bars(
    panel: Axes,
    policy: str,
    scores: Sequence[Score],
    counted: Sequence[Counted],
    of: str,
    by_work: str,
    table: Figures,
) -> None:
    names = list(dict.fromkeys(score.data_set for score in scores))

    def cells(ahead: bool) -> list[float]:
        by_set = {score.data_set: score for score in scores if _is(score, policy) and score.ahead == ahead}
        return [getattr(by_set[name], of) for name in names]

    work = {count.data_set: count for count in counted if (count.order, count.batch) == (policy, LONG)}
    kinds = (
        ("paper", [paper(table, name, policy, LONG) or 0.0 for name in names], "#c44e52"),
        ("ours, as in the paper", cells(False), "#4c72b0"),
        ("ours, orders told beforehand", cells(True), "#55a868"),
        ("by counted work", [getattr(work[name], by_work) for name in names], "#8c8c8c"),
    )
    for i, (name, heights, colour) in enumerate(kinds):
        panel.bar([x + (i - 1.5) * 0.2 for x in range(len(names))], heights, 0.19, label=name, color=colour)
    panel.axhline(1 if of == "time" else 0.5, color="#222222", linewidth=1)
    panel.set_xticks(range(len(names)), names)
    label(panel, "beside timestamp" if of == "time" else "of the results", "data set")


def _is(score: Score, policy: str) -> bool:
    return (score.policy, score.batch) == (policy, LONG)


def draw_engine(batches: Sequence[Batches], file: Path) -> None:
    """weir's engine: time beside the plan's order, and when results are there."""
    figure, axes = plt.subplots(2, 1, figsize=(13, 7), layout="constrained", sharex=True)
    shown = [measured for measured in batches if measured.policy not in (TIMESTAMP, ROUND_ROBIN)]
    names = list(dict.fromkeys(measured.data_set for measured in shown))
    policies = (FIXED, CONSUMPTION, INITIAL, RATE, LEAST)
    for panel, (of, what) in zip(
        axes,
        (("beside_fixed", "time, the plan's order = 1"), ("moment", "mean moment of a result")),
        strict=True,
    ):
        for i, policy in enumerate(policies):
            mine = {
                measured.data_set: getattr(measured, of) for measured in shown if measured.policy == policy
            }
            places = [x + (i - 2) * 0.16 for x, name in enumerate(names) if name in mine]
            heights = [mine[name] for name in names if name in mine]
            panel.bar(places, heights, 0.15, color=_LOOKS[policy][0], label=policy)
        label(panel, what, "")
        panel.set_xticks(range(len(names)), names)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle("weir's engine, stream by stream: what an order changes")
    save(figure, file)
