"""Figure 9 of Mukherji et al. 2011: how much is stale without the cover, and what the cover takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import mean

from weir_lab.jaqpot.play import Played, fill_stage
from weir_lab.jaqpot.policies import GREPP, JAQPOT, Division, cover_share, divide
from weir_lab.jaqpot.rivals import RIVALS
from weir_lab.jaqpot.settings import FACTORS, SHAPES, Setting, Shape, draw_any_settings

# Mukherji et al. 2011, section 5.3: probes a second.
BUDGET = 300.0
_SHARES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
# So few probes bring few rows into any state between two batches, however far apart these are.
_BATCHES = 2


@dataclass(frozen=True, slots=True)
class Staleness:
    """The share of a policy's results that break a freshness of so many windows."""

    plan: str
    setting: int
    policy: str
    factor: float
    share: float
    results: float
    stale: float
    loosened: float

    @staticmethod
    def of(
        plan: str, setting: int, policy: str, factor: float, played: Played, division: Division
    ) -> Staleness:
        """What was seen while a policy's division was played."""
        return Staleness(
            plan=plan,
            setting=setting,
            policy=policy,
            factor=factor,
            share=played.stale_share,
            results=played.fresh_rate,
            stale=played.stale / played.seconds,
            loosened=division.loosened,
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """What JAQPOT's cover takes of a budget; None if the budget cannot hold the freshness."""

    plan: str
    setting: int
    factor: float
    budget: float
    share: float | None


def measure_staleness(
    setting: Setting, factors: Sequence[float], tell: Callable[[str], None]
) -> Iterator[Staleness]:
    """Four rivals and GrePP know nothing of freshness; JAQPOT does, and is looked at beside them.

    All begin with fresh states, and are counted once what they do not refresh has had time to grow stale.
    """
    setting = replace(setting, batches=_BATCHES)
    for factor in factors:
        full = fill_stage(setting, factor, setting.number)
        for policy in (*RIVALS, GREPP, JAQPOT):
            tell(f"figure 9, {setting.shape} {setting.number}: {policy} at {factor}x")
            fresh = setting.fresh_seconds(factor)
            division = divide(policy, setting.graph, setting.tree, BUDGET, fresh)
            _, settled = full.play(factor * setting.longest, division.allowance)
            played, _ = settled.play(setting.longest / 2, division.allowance)
            yield Staleness.of(setting.shape, setting.number, policy, factor, played, division)


def measure_covers(count: int, seed: int = 9) -> list[Spent]:
    """The cover's share for many settings and budgets, which no engine has to run for."""
    return [
        _spent(shape, setting, factor, share * setting.full.spent)
        for shape in SHAPES
        for setting in islice(draw_any_settings(shape, seed), count)
        for factor in FACTORS
        for share in _SHARES
    ]


def _spent(shape: Shape, setting: Setting, factor: float, budget: float) -> Spent:
    share = cover_share(setting.graph, setting.net, budget, setting.fresh_seconds(factor))
    return Spent(shape, setting.number, factor, budget, share)


def mean_stale(runs: Sequence[Staleness], plan: str, policy: str, factor: float) -> float | None:
    """The mean share over all settings; JAQPOT counts only where the budget can hold the freshness."""
    shares = [
        run.share
        for run in runs
        if (run.plan, run.policy, run.factor) == (plan, policy, factor) and run.loosened == 1
    ]
    return mean(shares) if shares else None


def mean_spent(covers: Sequence[Spent], plan: str, factor: float) -> float:
    """The mean share of the budget that the cover takes where it can be held."""
    return mean(
        cover.share
        for cover in covers
        if cover.plan == plan and cover.factor == factor and cover.share is not None
    )


def infeasible_share(covers: Sequence[Spent]) -> float:
    """How many of the settings and budgets cannot hold their freshness."""
    return mean(cover.share is None for cover in covers) if covers else 0.0
