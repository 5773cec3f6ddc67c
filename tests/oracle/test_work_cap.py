"""Under any work cap: a part of the exact results, each once, the same ones again, and little more work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis.strategies import SearchStrategy

from weir.adapt.batch_report import BatchReport
from weir.kernel import ranges, work_cap
from weir.order.policies import INTERLEAVING_POLICIES
from weir.shed.allowance import Allowance
from weir.stats.batch_counts import count_steps
from weir.stats.hop import Hop

from .case import Case
from .generate import beyond_sql, relational, stirred, ties
from .reference import Results
from .run import asked, compare, explore, results


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a few rows, as generated streams have no more."""
    monkeypatch.setattr(work_cap, "_FIRST_ROWS", 3)
    monkeypatch.setattr(work_cap, "_FEWEST_ROWS", 1)


@dataclass
class Cuts:
    """How often a cap cut something, and how often something was found all the same."""

    cases: int = 0
    cut: int = 0
    found: int = 0


def run_capped(
    case: Case, cap: int | None, allowance: Allowance | None = None
) -> tuple[Results, list[BatchReport]]:
    query = asked(case).start()
    query.allow(allowance)
    decide = query._decider._decide
    query._decider._decide = lambda *given: replace(decide(*given), work_cap=cap)  # type: ignore[method-assign]
    found, reports = Results(), []
    for batch in range(case.batches):
        found += results(query.process({one.name: one.batch(batch) for one in case.inputs}))
        assert query.last_report is not None
        reports.append(query.last_report)
    return found, reports


def count_work(reports: list[BatchReport]) -> list[dict[Hop, tuple[int, ...]]]:
    names = ("probes", "comparisons", "matches", "capped")
    return [
        {hop: tuple(getattr(hop_stats, name) for name in names) for hop, hop_stats in report.per_hop.items()}
        for report in reports
    ]


def draw_cap(case: Case, exact: list[BatchReport]) -> int:
    most = max(count_steps(report.per_hop.values()) for report in exact)
    return int(most * Random(repr((case.on, case.names))).choice((0.05, 0.2, 0.5, 0.8)))


def make_check(cuts: Cuts, has_sample: bool = False) -> Callable[[Case], Results]:
    allowance = Allowance(sample=0.2) if has_sample else None

    def check(case: Case) -> Results:
        exact, exact_reports = run_capped(case, None, allowance)
        cap = draw_cap(case, exact_reports)
        found, reports = run_capped(case, cap, allowance)
        assert found <= exact, found - exact
        again, reports_again = run_capped(stirred(case, Random(0)), cap, allowance)
        compare(again, found)
        assert count_work(reports_again) == count_work(reports)
        compare(run_capped(case, 2**60, allowance)[0], exact)
        is_cut = any(report.counts.capped for report in reports)
        assert is_cut or found == exact
        for report, exact_report in zip(reports, exact_reports, strict=True):
            assert report.counts.capped <= report.shed
            if count_steps(exact_report.per_hop.values()) <= cap // count_paths(report):
                assert not report.counts.capped or is_tree(report)
        cuts.cases, cuts.cut, cuts.found = (
            cuts.cases + 1,
            cuts.cut + is_cut,
            cuts.found + (is_cut and bool(found)),
        )
        return exact

    return check


def count_paths(report: BatchReport) -> int:
    return sum(len(node.inputs) for node in report.plan.inner())


def is_tree(report: BatchReport) -> bool:
    """What an earlier batch did not store changes what a later one finds in a tree."""
    return not report.plan.is_mjoin


CASES = {
    "relational": (relational(), 60, False),
    "sampled": (relational(), 30, True),
    "beyond SQL": (beyond_sql(), 20, False),
    "row windows": (ties(), 30, False),
    "interleaved": (
        relational().map(lambda case: replace(case, driver_order=INTERLEAVING_POLICIES[0])),
        30,
        False,
    ),
}


@pytest.mark.parametrize(("cases", "examples", "has_sample"), CASES.values(), ids=CASES)
def test_a_cap_leaves_a_part_of_the_exact_results(
    cases: SearchStrategy[Case], examples: int, has_sample: bool
) -> None:
    cuts = Cuts()
    explore(cases, make_check(cuts, has_sample), examples, share=0.25)
    print(cuts)
    assert cuts.cut >= 0.3 * cuts.cases, cuts
    assert cuts.found >= 0.15 * cuts.cases, cuts


def test_numpy_and_numba_cut_at_the_same_row(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the extra [fast] is not installed")
    monkeypatch.setattr(ranges._Steps, "made", 0)
    ranges.use_compiled()

    def check(case: Case) -> Results:
        runs = []
        for steps in (0, ranges._WORTH_COMPILING):
            monkeypatch.setattr(ranges._Steps, "made", steps)
            exact, exact_reports = run_capped(case, None)
            cap = draw_cap(case, exact_reports)
            found, reports = run_capped(case, cap)
            runs.append((found, count_work(exact_reports), count_work(reports)))
        assert runs[0] == runs[1]
        return exact

    explore(relational(), check, examples=40, share=0.25)
