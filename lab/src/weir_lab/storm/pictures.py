"""Draw five panels over time: rows, batch times, state, ages, decisions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot, which would look for a screen

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from weir_lab.picture import label, save
from weir_lab.storm.record import Batch, find_changes
from weir_lab.storm.schedule import Schedule
from weir_lab.storm.setup import ADAPTIVE, DROPPING, OWN

_LOOKS = {ADAPTIVE: ("#4c72b0", "-"), DROPPING: ("#c44e52", "--"), OWN: ("#8c8c8c", ":")}
_MEGABYTE = 1 << 20


def draw(
    schedule: Schedule,
    batches: Sequence[Batch],
    results: dict[str, list[int]],
    fresh: float,
    file: Path,
) -> None:
    """Draw the whole storm; `results` are those of each lane and tick."""
    figure, panels = plt.subplots(5, 1, figsize=(12, 15), layout="constrained", sharex=True)
    for panel in panels:
        _shade(panel, schedule)
    rows, times, state, ages, decisions = panels
    lanes = {name: [batch for batch in batches if batch.lane == name] for name in _LOOKS}
    _rows(rows, lanes, results)
    _times(times, lanes)
    _state(state, lanes)
    _ages(ages, lanes, fresh)
    _decisions(decisions, lanes[ADAPTIVE])
    for phase in schedule.phases:
        rows.annotate(
            phase.name,
            (phase.begin, 1.0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            xytext=(2, 4),
            fontsize=9,
        )
    save(figure, file)


def _shade(panel: Axes, schedule: Schedule) -> None:
    for place, phase in enumerate(schedule.phases):
        colour = "#ffffff" if phase.is_calm else ("#f3efe6", "#e9e4d8")[place % 2]
        panel.axvspan(phase.begin, phase.end, color=colour, zorder=0)


def _rows(panel: Axes, lanes: dict[str, list[Batch]], results: dict[str, list[int]]) -> None:
    ours = lanes[ADAPTIVE]
    interval = ours[0].interval if ours else 1.0
    given = [(batch.tick + 1, batch.rows_in / (max(batch.ticks, 1) * interval)) for batch in ours]
    panel.plot([x for x, _ in given], [y for _, y in given], color="#222222", linewidth=1, label="in")
    for lane, counts in results.items():
        colour, style = _LOOKS[lane]
        panel.plot(
            [tick + 1 for tick in range(len(counts))],
            [count / interval for count in counts],
            style,
            color=colour,
            label=f"out, {lane}",
        )
    panel.set_yscale("symlog", linthresh=10)
    label(panel, "rows a second", "")
    panel.legend(framealpha=0.9, edgecolor="none", fontsize=8, loc="lower right")


def _times(panel: Axes, lanes: dict[str, list[Batch]]) -> None:
    for lane, mine in lanes.items():
        colour, style = _LOOKS[lane]
        panel.plot(
            [batch.tick + 1 for batch in mine],
            [batch.seconds for batch in mine],
            style,
            marker=".",
            color=colour,
            label=lane,
        )
    if lanes[ADAPTIVE]:
        panel.axhline(lanes[ADAPTIVE][0].interval, color="#222222", linewidth=1, label="trigger interval")
    panel.set_yscale("log")
    label(panel, "seconds of a batch", "")
    panel.legend(framealpha=0.9, edgecolor="none", fontsize=8)


def _state(panel: Axes, lanes: dict[str, list[Batch]]) -> None:
    for lane, mine in lanes.items():
        colour, style = _LOOKS[lane]
        told = [
            (batch.tick + 1, batch.state_bytes / _MEGABYTE) for batch in mine if batch.state_bytes is not None
        ]
        panel.plot([x for x, _ in told], [y for _, y in told], style, color=colour, label=lane)
    budget = [
        (batch.tick + 1, batch.budget_bytes / _MEGABYTE) for batch in lanes[ADAPTIVE] if batch.budget_bytes
    ]
    panel.step(
        [x for x, _ in budget],
        [y for _, y in budget],
        where="post",
        color="#222222",
        linewidth=1,
        label="budget",
    )
    panel.set_ylim(bottom=0)
    label(panel, "state [MB]", "")
    panel.legend(framealpha=0.9, edgecolor="none", fontsize=8)


def _ages(panel: Axes, lanes: dict[str, list[Batch]], fresh: float) -> None:
    for lane, mine in lanes.items():
        colour, style = _LOOKS[lane]
        told = [(batch.tick + 1, batch.oldest_age) for batch in mine if batch.oldest_age is not None]
        panel.plot([x for x, _ in told], [y for _, y in told], style, color=colour, label=lane)
    panel.axhline(fresh, color="#222222", linewidth=1, label="freshness")
    panel.set_ylim(bottom=0)
    label(panel, "oldest row emitted [s]", "")
    panel.legend(framealpha=0.9, edgecolor="none", fontsize=8)


def _decisions(panel: Axes, ours: Sequence[Batch]) -> None:
    """Draw the estimated recall, and a mark at each change of decision."""
    told = [(batch.tick + 1, batch.recall) for batch in ours if batch.recall is not None]
    panel.plot(
        [x for x, _ in told], [y for _, y in told], color=_LOOKS[ADAPTIVE][0], label="estimated recall"
    )
    for before, after in find_changes(ours):
        colour = "#dd8452" if (before.plan, before.orders) != (after.plan, after.orders) else "#55a868"
        panel.axvline(after.tick + 1, color=colour, linewidth=1)
    for name, colour in (("another plan or other orders", "#dd8452"), ("another allowance", "#55a868")):
        panel.plot([], [], color=colour, label=name)
    panel.set_ylim(0, 1.05)
    label(panel, "decisions and recall", "ticks")
    panel.legend(framealpha=0.9, edgecolor="none", fontsize=8, loc="lower right")
