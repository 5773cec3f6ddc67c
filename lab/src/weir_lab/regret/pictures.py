"""One picture a scenario: recall true and told, CPU beside the budget, memory, and the decisions in force."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from textwrap import fill

import matplotlib

matplotlib.use("Agg")  # before pyplot, which would look for a screen

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from weir_lab.picture import label, save
from weir_lab.regret.outcome import WHOLE, Outcome
from weir_lab.regret.record import Record, by_phase

_OURS, _RIVAL, _TOLD, _BUDGET = "#4c72b0", "#8c8c8c", "#dd8452", "#222222"
_KILOBYTE = 1 << 10
_WIDTH = 30


def draw(outcome: Outcome, file: Path) -> None:
    """Draw one scenario; the rival is the best fixed decision over the whole of it."""
    ours = outcome.ours
    best = next((each.decision for each in outcome.regrets() if each.phase == WHOLE), None)
    rival = [] if best is None else outcome.fixed[best]
    has_memory = any(each.most_bytes for each in ours)
    figure, panels = plt.subplots(
        4 if has_memory else 3, 1, figsize=(13, 11 if has_memory else 9), layout="constrained", sharex=True
    )
    _recall(panels[0], ours, rival, best)
    _cpu(panels[1], ours, rival)
    if has_memory:
        _memory(panels[2], ours)
    _decisions(panels[-1], ours)
    for panel in panels:
        _mark_phases(panel, ours, named=panel is panels[0])
    panels[-1].set_xlabel("batch")
    figure.suptitle(f"{outcome.scenario.name} ({outcome.machine} machine): {outcome.scenario.what}")
    save(figure, file)


def _recall(panel: Axes, ours: Sequence[Record], rival: Sequence[Record], best: str | None) -> None:
    intervals = [each for each in ours if each.low is not None and each.high is not None]
    if intervals:
        panel.fill_between(
            [each.batch for each in intervals],
            [each.low or 0.0 for each in intervals],
            [each.high or 0.0 for each in intervals],
            color=_TOLD,
            alpha=0.25,
            linewidth=0,
            label="told, interval of 90 %",
        )
    told = [(each.batch, each.told) for each in ours if each.told is not None]
    panel.plot([x for x, _ in told], [y for _, y in told], "--", color=_TOLD, label="told")
    if rival:
        panel.plot(
            *_true(rival), color=_RIVAL, linewidth=1, label=fill(f"best fixed decision: {best}", _WIDTH)
        )
    panel.plot(*_true(ours), color=_OURS, label="true")
    panel.set_ylim(0, 1.05)
    label(panel, "recall", "")
    _name_lines(panel)


def _name_lines(panel: Axes) -> None:
    """Name the lines beside the panel, where they hide nothing."""
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)


def _true(records: Sequence[Record]) -> tuple[list[int], list[float]]:
    known = [(each.batch, each.recall) for each in records if each.recall is not None]
    return [x for x, _ in known], [y for _, y in known]


def _cpu(panel: Axes, ours: Sequence[Record], rival: Sequence[Record]) -> None:
    batches = [each.batch for each in ours]
    if rival:
        panel.plot(
            batches, [each.cpu for each in rival], color=_RIVAL, linewidth=1, label="best fixed decision"
        )
    panel.plot(batches, [each.cpu for each in ours], color=_OURS, label="weir")
    budgets = [(each.batch, each.budget) for each in ours if each.budget is not None]
    panel.step([x for x, _ in budgets], [y for _, y in budgets], where="mid", color=_BUDGET, label="budget")
    panel.set_ylim(bottom=0)
    label(panel, "CPU seconds a batch", "")
    _name_lines(panel)


def _memory(panel: Axes, ours: Sequence[Record]) -> None:
    batches = [each.batch for each in ours]
    panel.plot(batches, [each.bytes / _KILOBYTE for each in ours], color=_OURS, label="weir")
    budgets = [(each.batch, each.most_bytes / _KILOBYTE) for each in ours if each.most_bytes]
    panel.step([x for x, _ in budgets], [y for _, y in budgets], where="mid", color=_BUDGET, label="budget")
    panel.set_ylim(bottom=0)
    label(panel, "state [kB]", "")
    _name_lines(panel)


def _decisions(panel: Axes, ours: Sequence[Record]) -> None:
    """Draw a bar for every stretch of batches with one tree and one way to shed."""
    names = list(dict.fromkeys(f"{each.plan}\n{_describe(each)}" for each in ours))
    place = 0
    for name, stretch in groupby(ours, key=lambda each: f"{each.plan}\n{_describe(each)}"):
        length = len(list(stretch))
        panel.barh(names.index(name), length, left=place - 0.5, height=0.7, color=_OURS)
        place += length
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.invert_yaxis()
    label(panel, "plan, what it sheds", "")


def _describe(each: Record) -> str:
    return each.sheds if each.sheds == "exact" else f"sheds {each.sheds}"


def _mark_phases(panel: Axes, ours: Sequence[Record], named: bool) -> None:
    for name, part in by_phase(ours):
        panel.axvline(part[0].batch - 0.5, color="#cccccc", linewidth=1, zorder=0)
        if named:
            panel.annotate(
                name,
                (part[0].batch - 0.5, 1.0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                xytext=(2, 4),
                fontsize=9,
            )
