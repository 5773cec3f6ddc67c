"""Under any allowance: a part of the exact results, each once, and the same ones however the rows came."""

from __future__ import annotations

from random import Random

from weir.plan.tree import Join, hops
from weir.query.windows import RowWindow
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance

from .case import Case
from .composed import composed
from .generate import relational, stirred, ties
from .reference import Results
from .run import asked, compare, explore, run_batches

SHARES = (0.0, 0.05, 0.3, 0.5, 0.9, 1.0)


def drawn(case: Case) -> Allowance:
    """Any share and any ages for any hop; drawn from the case, so that a second run has the same."""
    rng = Random(repr((case.on, case.names, case.driver_order)))
    found = asked(case)
    plan, bounds = found.planned.plan, found.query.bounds
    known = [kept for i in range(len(case.names)) if (kept := bounds.retention(i))]
    every = max(1, max(known, default=1000) // rng.choice((1, 3, 10)))
    return Allowance(
        probes={hop: rng.choice(SHARES) for hop in hops(plan) if rng.random() < 0.4},
        choose=rng.choice(("newest", "hash")),
        sample=rng.choice((0.0, 0.0, 0.1, 0.5)),
        ages={
            hop: Ages(every, frozenset(k for k in range(10) if rng.random() < 0.7))
            for hop in hops(plan)
            if rng.random() < 0.4
        },
        drop={name: rng.choice((0.0, 0.1, 0.5)) for name in case.names if rng.random() < 0.3},
    )


def check(case: Case) -> Results:
    exact, _ = run_batches(case)
    allowance = drawn(case)
    found, _ = run_batches(case, allowance)
    assert found <= exact, found - exact
    compare(run_batches(stirred(case, Random(0)), allowance)[0], found)
    compare(run_batches(case, Allowance(dict.fromkeys(allowance.probes, 1.0)))[0], exact)
    return found


def test_any_plan() -> None:
    explore(relational(), check, examples=40, share=0.25)


def test_row_windows() -> None:
    explore(ties(), check, examples=20, share=0.25)


def test_composed_windows() -> None:
    explore(composed(), _check_composed, examples=30, share=0.2)


def _check_composed(case: Case) -> Results:
    assert isinstance(case.plan, Join)
    if not any(isinstance(node.window, RowWindow) for node in case.plan.inner()):
        return check(case)
    # The last rows of an inner join that makes fewer reach further back, so there may be other results than
    # the exact ones; they still fulfil the condition, each once.
    allowance = drawn(case)
    found, _ = run_batches(case, allowance)
    compare(run_batches(stirred(case, Random(0)), allowance)[0], found)
    assert set(found.values()) <= {1}
    rows = [{row["id"]: row for row in one.table.to_pylist()} for one in case.inputs]
    for ids in found:
        result = {name: known[i] for name, known, i in zip(case.names, rows, ids, strict=True)}
        assert all(condition.check(result) for condition in case.conditions)
    return found
