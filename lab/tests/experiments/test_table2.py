"""Table 2 of Zhu et al. 2010 by its own formulas, and where what is printed contradicts them."""

from __future__ import annotations

import pytest

from weir.plan.limits import Limits
from weir_lab.qualified.table2 import CPU_AVAILABLE, SETS, TABLE_3, Plans, Region

PLANS = {printed.number: Plans.of(printed.graph) for printed in SETS}


@pytest.mark.parametrize(
    ("number", "kind", "tree", "cpu", "memory"),
    [
        (1, "mjoin", "(A B C)", 0.035664, 300),
        (1, "bjtree", "((A B) C)", 0.033544, 800),
        (2, "mjoin", "(A B C)", 0.314064, 1_350),
        (2, "bjtree", "((A B) C)", 0.29766, 3_150),
        (3, "mjoin", "(A B C D)", 0.476536, 600),
        (3, "jtree", "((A B) C D)", 0.461806, 2_850),
        (3, "bjtree", "((A B) (C D))", 0.447076, 5_100),
        (4, "mjoin", "(A B C D)", 36.180792, 4_000),
        (4, "jtree", "((A B) C D)", 35.558512, 24_000),
        (4, "bjtree", "((A B) (C D))", 35.207312, 74_000),
    ],
)
def test_what_plans_take(number: int, kind: str, tree: str, cpu: float, memory: float) -> None:
    plan = next(plan for plan in PLANS[number].all if plan.kind == kind)
    assert str(plan.tree) == tree
    assert plan.cpu == pytest.approx(cpu)
    assert plan.memory == pytest.approx(memory)


def test_the_sets_by_hand() -> None:
    """Equations 2 and 4 with the numbers of set 2, written out."""
    a, b, c, ab, bc, w = 20, 20, 50, 0.02, 0.5, 15
    cj, both = TABLE_3.match, TABLE_3.insert + TABLE_3.delete
    results = 3 * a * b * c * ab * bc * w**2 * cj
    inserts = (a + b + c) * both
    mjoin = inserts + b * c * bc * w * cj + results + 2 * a * b * ab * w * cj
    bjtree = inserts + results + 2 * a * b * ab * w * (cj + both)
    assert PLANS[2].mjoin.cpu == pytest.approx(mjoin)
    assert PLANS[2].bjtree.cpu == pytest.approx(bjtree)


@pytest.mark.parametrize(
    ("number", "arises"),
    [
        (1, "a"),  # as the paper says
        # Section 4.2.2: the mjoin is not qualified. By equation 2 it takes 0.31 s of the second it has, 5 %
        # more than the bjtree, so its throughput cannot be half of the bjtree's on any machine.
        (2, "a"),
        # Section 4.2.3 stops the bjtree by memory, so M_a has to lie between 600 and 5,100 tuples: a tuple
        # would take from 6 to 52 kB. With smaller tuples both qualify.
        (3, "a"),
        # Section 4.2.4: a jtree is qualified. By the formulas every plan needs about 36 s a second, of which
        # 35.2 s are for the 16 million results that come each second.
        (4, "e"),
    ],
)
def test_what_arises_at_one_second_a_second(number: int, arises: str) -> None:
    assert PLANS[number].situation(Limits(CPU_AVAILABLE)) == arises


def test_budgets_at_which_the_meant_situation_arises() -> None:
    regions = {printed.number: PLANS[printed.number].region(printed.meant) for printed in SETS}
    for printed in SETS:
        region = regions[printed.number]
        assert region is not None
        assert PLANS[printed.number].situation(region.middle) == printed.meant
    assert regions[2] == Region(pytest.approx((0.29766, 0.314064)), pytest.approx((3150, float("inf"))))
    assert regions[3] == Region(pytest.approx((0.476536, float("inf"))), pytest.approx((600, 5100)))
    assert regions[4] == Region(pytest.approx((35.558512, 36.180792)), pytest.approx((24000, 74000)))


def test_three_streams_in_a_chain_have_no_jtree_between() -> None:
    assert PLANS[1].region("d") is None
    assert PLANS[2].region("d") is None
    assert PLANS[3].region("d") is not None


def test_the_tuple_sizes_that_make_the_memory_limit_matter() -> None:
    sizes = {
        printed.number: region.tuple_bytes(printed.megabytes)
        for printed in SETS
        if (region := PLANS[printed.number].region(printed.meant))
    }
    # Sets 1 and 2 want no limit, and have none unless a tuple takes hundreds of kilobytes.
    assert sizes[1] == (0.0, pytest.approx(393_216))
    assert sizes[2] == (0.0, pytest.approx(99_864, rel=1e-4))
    assert sizes[3] == pytest.approx((6_168, 52_429), rel=1e-3)
    assert sizes[4] == pytest.approx((425, 1_311), rel=1e-3)
