"""The paper's figures 6 to 9, drawn from what we measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import matplotlib

matplotlib.use("Agg")  # before pyplot, which would look for a screen

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from weir_lab.jaqpot.aims import PAPER_GAIN, PAPER_SENSORS
from weir_lab.jaqpot.freshness import Spent, Staleness, infeasible_share, mean_spent, mean_stale
from weir_lab.jaqpot.policies import GREPP, JAQPOT, LP, POLICIES_COMPARED, STEADY
from weir_lab.jaqpot.rivals import RIVALS
from weir_lab.jaqpot.sensors import Mark
from weir_lab.jaqpot.settings import FACTORS, SHAPES
from weir_lab.jaqpot.shift import Minute
from weir_lab.jaqpot.throughput import POLICIES_TIMED, Point, advantages
from weir_lab.picture import label, save

_LOOKS = {
    "EqualHJ": ("#8c8c8c", "s", ":"),
    "GlobalHJPR": ("#dd8452", "^", ":"),
    "EBestHJP": ("#937860", "v", ":"),
    "SBestHJP": ("#c44e52", "x", ":"),
    GREPP: ("#8172b3", "D", "--"),
    JAQPOT: ("#4c72b0", "o", "-"),
    LP: ("#55a868", "*", "-"),
    STEADY: ("#222222", "P", "-"),
}


def draw_throughput(points: Sequence[Point], file: Path) -> None:
    """Figure 7, beside what the paper says of it; bars from least to most."""
    figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained", sharex=True, sharey=True)
    for panel, shape in zip(axes, SHAPES, strict=True):
        mine = [point for point in points if point.shape == shape]
        _curves(panel, mine, POLICIES_COMPARED)
        gain = {policy: mean(advantages(points, shape, policy).values()) for policy in (JAQPOT, LP)}
        paper = f"(paper {PAPER_GAIN[shape]:g}x)"
        panel.set_title(f"{shape}: JAQPOT {gain[JAQPOT]:.1f}x, LP {gain[LP]:.1f}x the best rival {paper}")
    axes[0].plot(0.6, 0.8, "r+", markersize=14, label="the paper's JAQPOT: over 80 %")
    axes[0].legend(frameon=False, fontsize=9, loc="upper left")
    count = len({(point.shape, point.setting) for point in points})
    figure.suptitle(f"Mukherji et al. 2011, figure 7: measured output of {count} settings, bars min to max")
    save(figure, file)


def draw_timed(points: Sequence[Point], file: Path) -> None:
    """Windows of time, where the two programs differ: measured, and as predicted."""
    figure, panel = plt.subplots(figsize=(6.5, 4.8), layout="constrained")
    _curves(panel, points, POLICIES_TIMED)
    panel.legend(frameon=False)
    panel.set_title("linear plan with windows of time: a starved state is small")
    save(figure, file)


def _curves(panel: Axes, points: Sequence[Point], policies: Sequence[str]) -> None:
    for policy in policies:
        colour, marker, line = _LOOKS[policy]
        shares: dict[float, list[float]] = {}
        for point in points:
            if point.policy == policy:
                shares.setdefault(point.resources, []).append(point.share)
        over = sorted(shares)
        means = [mean(shares[x]) for x in over]
        spread = [
            [mean(shares[x]) - min(shares[x]) for x in over],
            [max(shares[x]) - mean(shares[x]) for x in over],
        ]
        panel.errorbar(
            over, means, yerr=spread, color=colour, marker=marker, linestyle=line, label=policy,
            markersize=6, elinewidth=0.8, capsize=2, alpha=0.9,
        )  # fmt: skip
    panel.plot([0, 1], [0, 1], color="#cccccc", linewidth=1, zorder=0)
    label(panel, "of saturation throughput", "of saturation resources")
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(PercentFormatter(1))
    panel.set_xlim(0, 1.03)
    panel.set_ylim(bottom=0)


def draw_freshness(stale: Sequence[Staleness], covers: Sequence[Spent], file: Path) -> None:
    """Figure 9."""
    figure, axes = plt.subplots(1, 4, figsize=(17, 4.4), layout="constrained")
    plans = ("linear", "bushy", "sensors")
    policies = (*RIVALS, GREPP, JAQPOT)
    factors = sorted({run.factor for run in stale})
    for panel, plan in zip(axes, plans, strict=False):
        for i, policy in enumerate(policies):
            shares = [mean_stale(stale, plan, policy, factor) for factor in factors]
            places = [x + (i - 2.5) * 0.13 for x in range(len(factors))]
            panel.bar(places, [share or 0.0 for share in shares], 0.12, color=_LOOKS[policy][0], label=policy)
            for x, share in zip(places, shares, strict=True):
                if share is None and policy == JAQPOT:
                    panel.text(x, 0.01, "infeasible", rotation=90, ha="center", va="bottom", fontsize=7)
        panel.set_title(f"{plan}, 300 probes/s")
        panel.set_ylim(0, 1)
        _factors(panel, "of all results are stale", factors)
    axes[2].legend(frameon=True, fontsize=9, loc="upper right")
    for i, shape in enumerate(SHAPES):
        places = [x + (i - 0.5) * 0.3 for x in range(len(FACTORS))]
        shares = [mean_spent(covers, shape, factor) for factor in FACTORS]
        axes[3].bar(places, shares, 0.28, label=f"{shape}: spent", color=("#4c72b0", "#55a868")[i])
        nones = [infeasible_share([c for c in covers if (c.plan, c.factor) == (shape, f)]) for f in FACTORS]
        axes[3].plot(places, nones, "x", color="#222222", label="infeasible" if not i else None)
    axes[3].set_title("JAQPOT's cover, budgets of 10–100 %")
    axes[3].legend(frameon=False, fontsize=9)
    _factors(axes[3], "of the budget", FACTORS)
    figure.suptitle(
        "Mukherji et al. 2011, figure 9: stale results without the cover (JAQPOT: with it, held back), "
        "and its price"
    )
    save(figure, file)


def _factors(panel: Axes, what: str, factors: Sequence[float]) -> None:
    label(panel, what, "freshness in windows")
    panel.set_xticks(range(len(factors)), [f"{factor:g}x" for factor in factors])
    panel.yaxis.set_major_formatter(PercentFormatter(1))


def draw_shifts(minutes: Sequence[Minute], file: Path) -> None:
    """Figure 6."""
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    for panel, shape in zip(axes, SHAPES, strict=True):
        for policy in POLICIES_COMPARED:
            mine = [minute for minute in minutes if (minute.shape, minute.policy) == (shape, policy)]
            over = sorted({minute.minute for minute in mine})
            means = [mean(minute.results for minute in mine if minute.minute == x) for x in over]
            low = [min(minute.results for minute in mine if minute.minute == x) for x in over]
            high = [max(minute.results for minute in mine if minute.minute == x) for x in over]
            _grown(panel, policy, [0, *over], [0, *means], [0, *low], [0, *high])
        for minute in (3, 7):
            panel.axvline(minute, color="#888888", linestyle="--", linewidth=1)
        panel.set_title(f"{shape} (paper: JAQPOT well above all)")
        label(panel, "results so far", "minute (scaled down)")
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes[0].legend(frameon=False)
    figure.suptitle(
        "Mukherji et al. 2011, figure 6: selectivities shift at 3 and 7 minutes; "
        "30 % of saturation, freshness 1.5x"
    )
    save(figure, file)


def draw_sensors(marks: Sequence[Mark], source: str, file: Path) -> None:
    """Figure 8."""
    budgets = sorted({mark.budget for mark in marks})
    figure, (axes,) = plt.subplots(
        1, len(budgets), figsize=(5.4 * len(budgets), 4.6), layout="constrained", squeeze=False
    )
    for panel, budget in zip(axes, budgets, strict=True):
        for policy in POLICIES_COMPARED:
            mine = [mark for mark in marks if (mark.budget, mark.policy) == (budget, policy)]
            over = sorted({mark.seconds for mark in mine})
            results = [[mark.results for mark in mine if mark.seconds == x] for x in over]
            means = [mean(here) for here in results]
            low, high = [min(here) for here in results], [max(here) for here in results]
            _grown(panel, policy, [0, *over], [0, *means], [0, *low], [0, *high])
        panel.set_title(f"{budget:g} probes/s (paper: JAQPOT {PAPER_SENSORS[budget]:g}x the best rival)")
        label(panel, "results so far", "virtual time [s]")
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes[0].legend(frameon=False)
    figure.suptitle(f"Mukherji et al. 2011, figure 8: five sensor groups ({source}), mean of several starts")
    save(figure, file)


def _grown(
    panel: Axes,
    policy: str,
    over: Sequence[float],
    means: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
) -> None:
    colour, _, line = _LOOKS[policy]
    panel.plot(over, means, color=colour, linestyle=line, label=policy, linewidth=2)
    panel.fill_between(over, low, high, color=colour, alpha=0.12, linewidth=0)
