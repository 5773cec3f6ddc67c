"""What an analysis found is adopted, tried or left."""

from __future__ import annotations

from dataclasses import replace

from weir.adapt.analyse import AdaptationScope, Analysis, Candidate
from weir.adapt.challenges import Challenges
from weir.adapt.choice import Choice, choose
from weir.adapt.settings import Adapt
from weir.adapt.trial import Base
from weir.plan.tree import join
from weir.shed.allowance import Allowance

FLOOR = Base(join("a", "b", "c"))
HARVEST = replace(FLOOR, allowance=Allowance(drop={"a": 0.5}), strategy="harvest")
TREE = Base(join(join("a", "b"), "c"))


def found(base: Base, recall: float, running: Base = FLOOR, model: float = 0.5) -> Analysis:
    return Analysis(Candidate(base, recall, 1.0, 0.0), Candidate(running, model, 1.0, 0.0))


def judged(recall: float, base: Base = FLOOR) -> Challenges:
    """A base that has been found to do so well."""
    return Challenges(base, recent=((1.0, recall, 1.0),) * 5, same=5)


def decide(analysis: Analysis, now: Challenges, may_try: bool = True, shed: str = "auto") -> Choice:
    return choose(analysis, now, AdaptationScope("tree", shed), Adapt(), may_try)  # type: ignore[arg-type]


def test_what_is_cleverer_has_to_win_a_trial() -> None:
    analysis = found(HARVEST, 0.8)
    assert decide(analysis, judged(0.5)) == Choice(analysis.best, is_trial=True)
    assert decide(analysis, judged(0.5), may_try=False) == Choice(asks_again="soon")
    waiting = replace(judged(0.5), wait_until=9.0)
    assert decide(analysis, waiting, may_try=False) == Choice()


def test_what_is_found_counts_more_than_what_is_promised() -> None:
    assert decide(found(HARVEST, 0.8), judged(0.9)) == Choice(asks_again="later")
    assert decide(found(FLOOR, 0.5, HARVEST), judged(0.6, HARVEST)) == Choice()
    back = found(FLOOR, 0.7, HARVEST)
    assert decide(back, judged(0.6, HARVEST)) == Choice(back.best), "and thinning needs no trial"


def test_another_tree_must_promise_more() -> None:
    assert decide(found(TREE, 0.53), judged(0.5)) == Choice()
    analysis = found(TREE, 0.6)
    assert decide(analysis, judged(0.5)) == Choice(analysis.best, is_trial=True)


def test_a_strategy_chosen_by_name_needs_no_trial() -> None:
    analysis = found(HARVEST, 0.4)
    assert decide(analysis, judged(0.5), shed="harvest") == Choice(analysis.best)
    other = found(TREE, 0.4, HARVEST, model=0.5)
    assert decide(other, judged(0.5), shed="harvest") == Choice(other.running), "another tree does"
