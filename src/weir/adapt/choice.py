"""Choice: whether what an analysis found is adopted, tried, or left, under a CPU budget.

What is measured counts more than what the model promises: a challenger must promise more than it is said to
gain, and more than is found now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from weir.adapt.analyse import AdaptationScope, Analysis, Candidate
from weir.adapt.challenges import Challenges
from weir.adapt.settings import Adapt
from weir.adapt.trial import Base

# A challenger with another tree must promise this much more: its states have to be built and thrown away.
_TREE_GAIN = 0.1


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be in force, None: what is; whether it has to win a trial, and when to ask again.

    `asks_again`: as "soon" as a trial may begin, or "later", after a window.
    """

    candidate: Candidate | None = None
    is_trial: bool = False
    asks_again: Literal["soon", "later"] | None = None


def choose(
    analysis: Analysis, now: Challenges, scope: AdaptationScope, settings: Adapt, may_try: bool
) -> Choice:
    """Choose what an analysis found, if it pays and may be adopted or tried now."""
    best = analysis.best
    if now.base.sheds and not best.base.sheds and best.recall <= now.standing.mean:
        return Choice()
    if not _needs_trial(best.base, now.base, scope):
        return Choice(best)
    otherwise = Choice(analysis.running if scope.has_own_strategy else None)
    if not may_try:
        return otherwise if now.is_waiting else replace(otherwise, asks_again="soon")
    is_tree = now.base.has_other_tree(best.base)
    least_gain = max(settings.gain, _TREE_GAIN) if is_tree else settings.gain
    if analysis.gain <= least_gain:
        return otherwise
    if best.recall > (1 + least_gain) * now.standing.mean:
        return Choice(best, is_trial=True)
    # By the model it pays, but more is found now than the model knows.
    return replace(otherwise, asks_again="later")


def _needs_trial(base: Base, running: Base, scope: AdaptationScope) -> bool:
    """False for the same plan with the strategy in force or none, or with the one that the user chose."""
    if scope.has_own_strategy:
        return running.has_other_tree(base)
    return base.plan != running.plan or base.strategy not in (running.strategy, "")
