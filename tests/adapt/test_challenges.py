"""What is in force, on trial and barred follows from the batches alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from weir.adapt.challenges import Challenges, Change, Ended
from weir.adapt.trial import Base
from weir.codec import from_json, to_json
from weir.plan.tree import join
from weir.shed.allowance import Allowance

FLOOR = Base(join("a", "b", "c"))
HARVEST = Base(join("a", "b", "c"), Allowance(drop={"a": 0.5}), "harvest")
TREE = Base(join(join("a", "b"), "c"))
WINDOW = 5.0


def run(
    challenges: Challenges, *recalls: float | None, window: float = WINDOW
) -> tuple[Challenges, Ended | None]:
    """Add batches of a second that take what they are allowed; return how the last of them ended."""
    ended = None
    for recall in recalls:
        challenges, ended = challenges.after(1.0, recall, 1.0, window)
    return challenges, ended


def try_it(challenges: Challenges, base: Base) -> Challenges:
    return challenges.begin(Change(base, "try")).adopt(base)


def win(base: Base = HARVEST) -> Challenges:
    """A base that has won its trial, 0.7 against 0.5."""
    tried = try_it(run(Challenges(FLOOR), *[0.5] * 6)[0], base).arrive(base.plan)
    challenges, ended = run(tried, *[0.7] * 5)
    assert ended is not None and ended.verdict == "won" and challenges.base == base
    return challenges


def lose(challenges: Challenges, base: Base = HARVEST) -> Challenges:
    lost, ended = run(try_it(challenges, base).arrive(base.plan), 0.1)
    assert ended is not None and ended.verdict == "lost"
    return lost.adopt(ended.trial.before).arrive(ended.trial.before.plan)


def test_a_trial_needs_something_to_beat() -> None:
    fresh, _ = run(Challenges(FLOOR, clock=100.0, batches=100), 0.5, 0.5)
    assert not fresh.may_try(WINDOW) and run(fresh, 0.5)[0].may_try(WINDOW)


def test_batches_longer_than_the_window_are_measured_too() -> None:
    challenges = Challenges(FLOOR)
    for _ in range(5):
        challenges, _ = challenges.after(3 * WINDOW, 0.5, 1.0, WINDOW)
    assert challenges.may_try(WINDOW)


def test_batches_of_the_plan_before_judge_nothing_while_another_is_built() -> None:
    building = try_it(run(Challenges(FLOOR), *[0.5] * 6)[0], TREE)
    assert building.active == FLOOR
    built, ended = run(building, *[0.1] * 9)
    assert ended is None and not built.recent and built.trial is not None and not built.trial.measured.batches
    won, ended = run(built.arrive(TREE.plan), *[0.7] * 5)
    assert ended is not None and ended.verdict == "won" and not won.recent


def test_the_end_of_a_bar_is_known_until_it_is_used() -> None:
    lost = lose(run(Challenges(FLOOR), *[0.5] * 6)[0])
    assert lost.barred_kinds == {"harvest"} and not lost.is_due and lost.is_waiting
    waited, _ = run(lost, *[0.5] * 15)
    assert waited.is_due and waited.barred_kinds == {"harvest"} and not waited.is_waiting, (
        "others may be tried"
    )
    waited = waited.lift_bars()
    assert not waited.is_due and waited.barred_kinds == {"harvest"}
    later, _ = run(waited, *[0.5] * 50)
    assert later.is_due and run(later, *[0.5] * 50)[0].is_due and not later.barred_kinds
    assert not later.lift_bars().is_due


def test_waits_double_with_every_trial_lost_and_end_with_one_won() -> None:
    once = lose(run(Challenges(FLOOR), *[0.5] * 6)[0])
    twice = lose(run(once, *[0.5] * 60)[0].lift_bars())
    assert twice.wait_until - twice.clock == 2 * (once.wait_until - once.clock) == 30.0
    tried = try_it(run(twice, *[0.5] * 60)[0], HARVEST)
    assert run(tried, *[0.7] * 5)[0].lost == 0


def test_row_windows_wait_for_batches() -> None:
    """They have no length in seconds; ten batches stand for it."""
    measured, _ = run(Challenges(FLOOR), *[0.5] * 12, window=0.0)
    assert len(measured.recent) == 10
    tried = try_it(measured, HARVEST)
    assert run(tried, *[0.7] * 9, window=0.0)[1] is None
    lost, ended = run(tried, 0.1, window=0.0)
    assert ended is not None and ended.verdict == "lost"
    assert lost.barred_kinds == {"harvest"} and lost.wait_until - lost.clock == 30.0


def test_what_won_is_beaten_by_what_it_had_beaten() -> None:
    worse, ended = run(win(), 0.3, 0.3, 0.3)
    assert ended is not None and ended.verdict == "beaten" and ended.trial.before == FLOOR
    assert not worse.barred, "there may be more rows now: it is asked again"


@pytest.mark.parametrize("recall", [None, 0.7])
def test_batches_of_unknown_recall_beat_nothing(recall: float | None) -> None:
    silent, ended = run(win(), *[recall] * 20)
    assert ended is None and silent.base == HARVEST


def test_what_won_is_forgotten_with_its_base() -> None:
    won = win()
    again = replace(HARVEST, allowance=Allowance(drop={"a": 0.4}))
    assert won.adopt(again).won == won.won, "the same way of shedding, with other numbers"
    assert won.adopt(FLOOR).won is None and won.adopt(TREE).won is None
    assert run(won.adopt(FLOOR), *[0.1] * 20)[1] is None


def test_new_numbers_of_a_strategy_are_judged_by_their_own_batches() -> None:
    """The old ones found nothing after the lags had changed."""
    worse, _ = run(win(), 0.0, 0.0)
    solved = worse.adopt(replace(HARVEST, allowance=Allowance(drop={"a": 0.4})))
    better, ended = run(solved, *[0.7] * 9)
    assert ended is None and better.standing.mean == pytest.approx(0.7)
    assert run(solved, 0.0, 0.0, 0.0)[1] is not None
    often = solved
    for drop in (0.3, 0.2, 0.1):
        often, _ = run(often.adopt(replace(HARVEST, allowance=Allowance(drop={"a": drop}))), 0.7)
    assert often.is_measured, "though its numbers change with every batch"


def test_all_of_it_can_be_stored() -> None:
    measured, _ = run(win(), 0.7, 0.7, 0.7)
    building = try_it(run(lose(measured, TREE), *[0.5] * 6)[0], TREE)
    assert from_json(Challenges, json.loads(json.dumps(to_json(building)))) == building
