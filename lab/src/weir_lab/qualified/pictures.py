"""The paper's figures 7, 8, 13 and 14, drawn from what we measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot, which would look for a screen

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from weir.plan.limits import Limits
from weir_lab.picture import label, save
from weir_lab.qualified.compare import (
    ALGORITHMS,
    EXHAUSTIVE,
    EXHAUSTIVE_STREAMS,
    OURS,
    PAPER,
    PLAIN,
    REMOVAL,
    SELECTION,
    Outcome,
    Score,
    Taken,
)
from weir_lab.qualified.overload import Run, Scene
from weir_lab.qualified.settings import Design

_COLOURS = {"mjoin": "#c44e52", "jtree": "#55a868", "bjtree": "#4c72b0"}
# Lines lie on one another where plans do the same; of different widths, all are seen.
_WIDTHS = {"mjoin": 3.6, "jtree": 2.4, "bjtree": 1.2}
_LOOKS = {
    EXHAUSTIVE: ("#222222", "s", "-"),
    PLAIN: ("#888888", "D", "--"),
    PAPER: ("#c44e52", "v", "--"),
    OURS: ("#55a868", "o", "-"),
    SELECTION: ("#8172b3", "^", ":"),
    REMOVAL: ("#dd8452", "x", ":"),
}
_DESIGNS = {
    "tuned": "one machine for all settings, selectivities tuned",
    "between": "limits between the mjoin's and the bjtree's",
}


def draw_scene(scene: Scene, runs: Sequence[Run], file: Path) -> None:
    """Accumulated results, rows in state and rows queued, over virtual time."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    panels = (("results so far", "results"), ("rows in state", "state"), ("rows queued", "queued"))
    for panel, (title, field) in zip(axes, panels, strict=True):
        for run in runs:
            times = [0.0, *(tick.seconds for tick in run.ticks)]
            values = [0, *(getattr(tick, field) for tick in run.ticks)]
            kind = run.plan.kind
            panel.plot(
                times, values, color=_COLOURS[kind], linewidth=_WIDTHS[kind], label=f"{kind} {run.plan.tree}"
            )
            if run.last.stopped:
                panel.plot(times[-1], values[-1], "X", color=_COLOURS[kind], markersize=11, clip_on=False)
        label(panel, title, "virtual time [s]")
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        # Where nothing waits, the line is to lie at the bottom and not in the middle.
        panel.set_ylim(0, max(10.0, panel.get_ylim()[1]))
    _draw_limit(axes[1], scene.limits.memory)
    axes[0].legend(frameon=False, loc="upper left")
    title = f"{scene.name} (Zhu et al. 2010, figure {scene.figure}): {machine(scene.limits)}"
    figure.suptitle(f"{title}\n{scene.note}")
    save(figure, file)


def draw_comparison(design: Design, scores: Sequence[Score], file: Path) -> None:
    """Figure 13: time, qualified percentage, and how many settings have a qualified plan."""
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    mine = [score for score in scores if score.design == design]
    for name in ALGORITHMS:
        line_scores = sorted((s for s in mine if s.algorithm == name), key=lambda s: s.streams)
        colour, marker, line = _LOOKS[name]
        look = {"color": colour, "marker": marker, "linestyle": line, "markersize": 5, "label": name}
        streams = [s.streams for s in line_scores]
        axes[0].plot(streams, [1e3 * s.median_seconds for s in line_scores], **look)
        shares = [(s.streams, s.percentage) for s in line_scores if s.percentage is not None]
        axes[1].plot([n for n, _ in shares], [share for _, share in shares], **look)
    best = [s for s in mine if s.algorithm == OURS]
    axes[2].bar([s.streams for s in best], [100 * s.existing / s.tried for s in best], color="#9ab6d6")
    axes[0].set_yscale("log")
    axes[0].axhline(50, color="#444444", linestyle="--", linewidth=1)
    axes[0].annotate("50 ms", (1.0, 50), xycoords=("axes fraction", "data"), ha="right", va="bottom")
    for panel, title in zip(
        axes,
        ("median time [ms]", "qualified percentage [%]", "settings with a qualified plan [%]"),
        strict=True,
    ):
        label(panel, title, "streams N")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_xlim(2.4, 20.6)
    # There no exhaustive search says what exists, so a plan that all miss is not counted.
    axes[1].axvspan(EXHAUSTIVE_STREAMS + 0.5, 20.6, color="#eeeeee", zorder=0)
    axes[1].text(16.5, 30, "against what any\nsearch found", ha="center", color="#666666")
    axes[1].set_ylim(0, 105)
    axes[2].set_ylim(0, 100)
    axes[1].legend(frameon=False, fontsize=9, loc="lower left")
    figure.suptitle(f"Zhu et al. 2010, figure 13: {_DESIGNS[design]}")
    save(figure, file)


def draw_plans(design: Design, outcomes: Sequence[Outcome], sizes: Sequence[int], file: Path) -> None:
    """Figure 14: where the plans of both climbers lie."""
    figure, (axes,) = plt.subplots(
        1, len(sizes), figsize=(4.6 * len(sizes), 4.6), layout="constrained", squeeze=False
    )
    for panel, streams in zip(axes, sizes, strict=True):
        mine = [outcome for outcome in outcomes if (outcome.design, outcome.streams) == (design, streams)]
        for name in (SELECTION, REMOVAL):
            _scatter(
                panel,
                name,
                [outcome.taken for outcome in mine if outcome.algorithm == name and outcome.taken],
            )
        label(panel, "CPU [s/s]", "memory [rows]")
        panel.set_title(f"N = {streams}")
        if panel.collections:
            panel.set_yscale("log")
            panel.set_xlim(left=0)
            panel.xaxis.set_major_locator(MaxNLocator(5))
            panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            panel.legend(frameon=False, loc="best")
        else:
            panel.text(0.5, 0.5, "no plan lies between", ha="center", transform=panel.transAxes)
    figure.suptitle(f"Zhu et al. 2010, figure 14: qualified plans found ({_DESIGNS[design]})")
    save(figure, file)


def _draw_limit(panel: Axes, memory: float) -> None:
    top = panel.get_ylim()[1]
    if memory > 2 * top:
        return  # far above everything; the title names it
    panel.set_ylim(0, max(top, 1.1 * memory))
    panel.axhline(memory, color="#444444", linestyle="--", linewidth=1)
    panel.annotate("memory", (0.99, memory), xycoords=("axes fraction", "data"), ha="right", va="bottom")


def _scatter(panel: Axes, name: str, plans: Sequence[Taken]) -> None:
    if plans:
        colour, marker, _ = _LOOKS[name]
        cpu, memory = zip(*plans, strict=True)
        panel.scatter(memory, cpu, color=colour, marker=marker, s=28, alpha=0.8, label=name)


def machine(limits: Limits) -> str:
    """A machine in words."""
    memory = "" if limits.memory == float("inf") else f", memory {limits.memory:,.0f} rows"
    return f"CPU {limits.cpu:.3g} s/s{memory}"
