"""The bars: what the records must show, each computed by a pure function, reached or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median

from weir_lab.aim import Aim
from weir_lab.regret.budget import MOST, worst_cpu, worst_memory
from weir_lab.regret.freshness import FreshRun
from weir_lab.regret.outcome import WHOLE, Outcome
from weir_lab.regret.paper_eviction import EvictionRun
from weir_lab.regret.record import Record, by_phase, total_recall
from weir_lab.regret.steady import SteadyRun, count_trials, judge

_MOST_UNSKIPPABLE = 0.3
_SLACK = 0.05
# A budget of so many times the exact cost leaves nothing to shed, and what counts as all results then.
_AMPLE, _ALL = 1.15, 0.9995
_MOST_TRIALS = 2
_STEADY, _WHOLE = 0.95, 0.8
_MOST_ERROR, _LEAST_COVERED, _MOST_WIDTH = 0.05, 0.85, 0.2
# Phases that tell no recall for more batches than this tell none.
_LEAST_TOLD = 0.8
# What counts as using a budget, and how many batches it may take to get there.
_USED, _SOON = 0.85, 2
_BACK, _BACK_SOON = 0.95, 3
# Predicted over measured CPU, and the share of the batches in which it must be so near to 1.
_NEAR, _LEAST_NEAR = 0.15, 0.9
# Of a batch, in triggers.
_LONGEST = 2.0
# Batches over which a recall or a load is averaged where single ones vary.
_AVERAGED = 5


def steady_bars(runs: Sequence[SteadyRun], where: str = "steady") -> list[Aim]:
    """Steady streams: the unskippable share, recall by budget, CPU and trials of other trees."""
    unskippable = fmean(each.unskippable for each in runs)
    found = f"f = {unskippable:.2f}, mean of {len(runs)} seeds"
    bars = [_at_most(f"{where}: CPU without any probe", unskippable, _MOST_UNSKIPPABLE, found)]
    for multiple in runs[0].budgeted:
        bars.append(_recall_bar(runs, multiple, unskippable, where))
    every = [records for each in runs for records in each.budgeted.values()]
    worst = max(each.worst_cpu(records) for each in runs for records in each.budgeted.values())
    found = f"{worst:.2f} of the budget at worst"
    bars.append(_at_most(f"{where}: CPU of any ten batches", worst, MOST, found))
    trials = max(count_trials(records) for records in every)
    bars.append(_at_most(f"{where}: trials of another tree", trials, _MOST_TRIALS, f"{trials} at most"))
    return bars + prediction_bars([each for records in every for each in judge(records)], where)


def required_recall(multiple: float, unskippable: float) -> float:
    """The recall that a budget must give; both are shares of the exact cost.

    >>> round(required_recall(0.5, 0.2), 3)
    0.325
    """
    return max(0.0, min(1.0, (multiple - unskippable) / (1 - unskippable)) - _SLACK)


def _recall_bar(runs: Sequence[SteadyRun], multiple: float, unskippable: float, where: str) -> Aim:
    outcomes = []
    for each in runs:
        records = each.budgeted[multiple]
        recall, real = total_recall(judge(records)) or 0.0, each.multiple(records)
        wanted = _ALL if real > _AMPLE else required_recall(real, unskippable)
        outcomes.append((recall - wanted, recall, wanted))
    recalls = [recall for _, recall, _ in outcomes]
    margin, recall, wanted = min(outcomes)
    reaching = sum(margin >= 0 for margin, _, _ in outcomes)
    return Aim(
        f"{where}: recall at {multiple:g} of the exact cost",
        f"at least {wanted:.2f} in every run",
        f"{recall:.2f} at worst, {fmean(recalls):.2f} in the mean; {reaching} of {len(runs)} runs reach it",
        margin >= 0,
    )


def prediction_bars(records: Iterable[Record], where: str) -> list[Aim]:
    """Predicted CPU beside measured CPU, batch by batch; no bar where nothing was predicted."""
    ratios = [each.predicted for each in records if each.predicted is not None]
    if not ratios:
        return []
    near = fmean(abs(ratio - 1) <= _NEAR for ratio in ratios)
    return [
        Aim(
            f"{where}: predicted CPU",
            f"within {_NEAR:.0%} of measured in {_LEAST_NEAR:.0%} of the batches",
            f"in {near:.0%} of {len(ratios)} batches; {median(ratios):.2f} of measured in the median",
            near >= _LEAST_NEAR,
        )
    ]


def regret_bars(outcomes: Iterable[Outcome]) -> list[Aim]:
    """Results over those of the best fixed decision: in steady phases and over whole scenarios."""
    regrets = [regret for outcome in outcomes for regret in outcome.regrets()]
    bars = []
    for what, least, judged in (
        ("steady phases", _STEADY, [each for each in regrets if each.phase != WHOLE]),
        ("whole scenarios", _WHOLE, [each for each in regrets if each.phase == WHOLE]),
    ):
        for machine in dict.fromkeys(each.machine for each in judged):
            own = [each for each in judged if each.machine == machine]
            worst, reaching = min(own, key=lambda each: each.ratio), sum(each.ratio >= least for each in own)
            bars.append(
                Aim(
                    f"regret, {machine}: {what}",
                    f"at least {least:g} of the best fixed decision",
                    f"{worst.ratio:.2f} at worst ({worst.scenario}, {worst.phase}); "
                    f"{reaching} of {len(own)} reach it",
                    worst.ratio >= least,
                )
            )
    return bars


def budget_bars(outcomes: Iterable[Outcome]) -> list[Aim]:
    """CPU and memory of weir in all scenarios: whole ones, and steady phases alone."""
    found = list(outcomes)
    parts = [(outcome, "steady", part) for outcome in found for part in outcome.steady.values()]
    parts += [(outcome, WHOLE, outcome.ours) for outcome in found]
    bars = []
    for what, measure in (("CPU of any ten batches", worst_cpu), ("memory", worst_memory)):
        for kind, label in (("steady", "steady phases"), (WHOLE, "whole scenarios")):
            taken = [(measure(part), outcome) for outcome, own, part in parts if own == kind]
            known = [(share, outcome.scenario.name, outcome.machine) for share, outcome in taken if share]
            if known:
                share, name, machine = max(known)
                reaching = sum(each[0] <= MOST for each in known)
                text = f"{share:.2f} at worst ({name}, {machine}); {reaching} of {len(known)} keep it"
                bars.append(_at_most(f"scenarios: {what}, {label}", share, MOST, text))
    steady = [each for _, kind, part in parts if kind == "steady" for each in part]
    return bars + prediction_bars(steady, "scenarios, steady phases")


def recall_bars(outcomes: Iterable[Outcome]) -> list[Aim]:
    """The recall that is told: its error phase by phase, and how often its interval holds the true one."""
    phases = [
        (f"{outcome.scenario.name}, {name}", part)
        for outcome in outcomes
        for name, part in by_phase(outcome.ours)
        if any(each.exact for each in part)
    ]
    errors = [(mean_error(part), name) for name, part in phases]
    error, where = max(errors)
    reaching = sum(each <= _MOST_ERROR for each, _ in errors)
    text = f"{error:.2f} at worst ({where}); {reaching} of {len(errors)} phases reach it"
    batches = [each for _, part in phases for each in part if each.exact]
    covered, width = cover(batches)
    worst, name = min((cover(part)[0], name) for name, part in phases)
    return [
        _at_most("recall: mean absolute error of a phase", error, _MOST_ERROR, text),
        Aim(
            "recall: intervals of 90 %",
            f"hold {_LEAST_COVERED:.0%} of the batches, {_MOST_WIDTH:g} wide in the mean",
            f"hold {covered:.0%}, "
            + ("none is told" if width is None else f"{width:.2f} wide")
            + f"; {worst:.0%} at worst ({name})",
            covered >= _LEAST_COVERED and width is not None and width <= _MOST_WIDTH,
        ),
    ]


def mean_error(records: Sequence[Record]) -> float:
    """The mean distance of told and true recall; 1 if hardly any is told where there is something to find."""
    known = [each for each in records if each.recall is not None]
    distances = [abs(each.told - (each.recall or 0.0)) for each in known if each.told is not None]
    if not known or len(distances) < _LEAST_TOLD * len(known):
        return 1.0
    return fmean(distances)


def cover(records: Sequence[Record]) -> tuple[float, float | None]:
    """The share of batches whose interval holds the true recall, no interval being a miss; the mean width."""
    known = [each for each in records if each.recall is not None]
    told = [(each.low, each.recall or 0.0, each.high) for each in known]
    held = sum(low is not None and high is not None and low <= true <= high for low, true, high in told)
    widths = [high - low for low, _, high in told if low is not None and high is not None]
    return held / len(known) if known else 0.0, fmean(widths) if widths else None


def raised_bar(outcome: Outcome) -> Aim:
    """A budget that is raised is used within two batches, unless nothing is missing."""
    raised = by_phase(outcome.ours)[1][1][_SOON : _SOON + _AVERAGED]
    share = sum(each.cpu for each in raised) / sum(each.budget or 0.0 for each in raised)
    recall = total_recall(raised) or 0.0
    return Aim(
        "a raised budget",
        f"used to {_USED:g} or recall of 1, after {_SOON} batches",
        f"{share:.2f} of it used, recall {recall:.2f} ({outcome.machine})",
        share >= _USED or recall >= _ALL,
    )


def neighbour_bar(outcome: Outcome) -> Aim:
    """After three batches of a CPU hog, the former recall is back within three batches."""
    before, _, after = (part for _, part in by_phase(outcome.ours))
    former = total_recall(before[-_AVERAGED:]) or 0.0
    back = total_recall(after[_BACK_SOON : _BACK_SOON + _AVERAGED]) or 0.0
    return Aim(
        f"three batches of a CPU hog, {outcome.machine}",
        f"{_BACK:.0%} of the former recall back after {_BACK_SOON} batches",
        f"{former:.2f} before, {back:.2f} after",
        back >= _BACK * former,
    )


def harvest_bar(outcome: Outcome) -> Aim:
    """Where lags can be learned, harvesting beats thinning, and weir finds as much as the better of them."""
    factors, shares = [], []
    for phase, part in outcome.steady.items():
        thinned = outcome.best_of(phase, ("thin",))
        harvested = outcome.best_of(phase, ("harvest", "mixture"))
        if thinned and harvested:
            factors.append(harvested / thinned)
            shares.append(sum(each.results for each in part) / max(thinned, harvested))
    if not factors:
        return Aim("lags: harvesting beats thinning", "by more than noise", "no fixed decision fits", False)
    return Aim(
        "lags: harvesting beats thinning",
        f"by a tenth and more, and weir finds {_STEADY:g} of it",
        f"{min(factors):.2f} to {max(factors):.2f} times; weir finds {min(shares):.2f} of the better one",
        min(factors) >= 1.1 and min(shares) >= _STEADY,
    )


def overload_bar(longest: float, trigger: float) -> Aim:
    """An overload that nobody announced: no batch takes longer than twice the trigger."""
    found = f"{longest:.1f} s at worst, with a trigger of {trigger:g} s"
    return _at_most("first batches of an overload, Spark", longest / trigger, _LONGEST, found)


def eviction_bar(run: EvictionRun) -> Aim:
    """Eviction by worth against the watermark finds at least what the paper's rule finds."""
    ours, paper = (total_recall(records) or 0.0 for records in (run.ours, run.paper))
    bytes_ours, bytes_paper = (worst_memory(records) or 0.0 for records in (run.ours, run.paper))
    return Aim(
        f"eviction, {run.scenario}: beside the rule of GrubJoin",
        "at least as much recall",
        f"{ours:.3f} beside {paper:.3f}, with {bytes_ours:.2f} and {bytes_paper:.2f} of the memory at worst",
        ours >= paper,
    )


def freshness_bar(run: FreshRun) -> Aim:
    """`fresh=` gives what its definition says, where there are fresh results and stale ones."""
    return Aim(
        f"fresh= by the {run.clock} clock, {run.engine}",
        "equal to a brute force in every batch",
        f"{run.equal} of {run.batches} batches equal; {run.results} fresh results, {run.stale} stale",
        run.equal == run.batches and run.results > 0 and run.stale > 0,
    )


def _at_most(what: str, value: float, most: float, found: str) -> Aim:
    return Aim(what, f"at most {most:g}", found, value <= most)
