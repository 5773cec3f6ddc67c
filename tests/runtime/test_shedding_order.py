"""Where ages are skipped, the streams go in the order that the ages were chosen for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.adapt.simulated_machine import asked, lags_at

import weir
from weir.order.policies import DriverOrder
from weir.plan.tree import hops, join
from weir.runtime.shedding_order import choose_driver_order
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop
from weir.stats.lag_histogram import LagHistogram, LagHistograms

QUERY = asked()
MJOIN = join("a", "b", "c")
BEHIND = LagHistograms(
    "a", {"b": LagHistogram(-10, 10, (1.0, 0.0, 0.0, 0.0)), "c": LagHistogram(-10, 10, (0.0, 0.0, 0.0, 1.0))}
)
IDLE = Allowance({Hop("c", str(MJOIN), "a"): 0.0})
SOME = Allowance({Hop("c", str(MJOIN), "a"): 0.5})
NARROW = Allowance(ages={hops(MJOIN)[0]: Ages(1_000_000, frozenset({0}))})


@pytest.mark.parametrize(
    ("wanted", "allowance", "lags", "found"),
    [
        ("auto", NARROW, BEHIND, ("b", "a", "c")),
        ("auto", IDLE, BEHIND, ("c", "b", "a")),
        ("auto", NARROW, None, "auto"),
        ("auto", IDLE, None, ("c", "a", "b")),
        ("auto", SOME, None, ("c", "a", "b")),
        ("auto", Allowance({Hop("b", str(MJOIN), "c"): 0.4, **SOME.probes}), None, ("b", "c", "a")),
        ("auto", replace(NARROW, probes=SOME.probes), BEHIND, ("b", "a", "c")),
        ("auto", Allowance(dict.fromkeys(hops(MJOIN), 1.0)), BEHIND, "auto"),
        ("auto", None, BEHIND, "auto"),
        ("auto", Allowance(sample=0.1), BEHIND, "auto"),
        ("least-work", NARROW, BEHIND, "least-work"),
        (("a", "b", "c"), NARROW, BEHIND, ("a", "b", "c")),
    ],
)
def test_streams_go_by_their_lags_where_we_may_choose(
    wanted: DriverOrder, allowance: Allowance | None, lags: LagHistograms | None, found: DriverOrder
) -> None:
    assert choose_driver_order(wanted, MJOIN, allowance, lags) == found


@pytest.mark.parametrize(
    ("idle", "found"),
    [("(a b)", ("a", "b", "c")), ("a", ("c", "a", "b")), ("b", ("c", "b", "a")), ("c", ("c", "a", "b"))],
)
def test_in_a_tree_the_inputs_of_a_join_wait_for_those_that_do_not_look(
    idle: str, found: tuple[str, ...]
) -> None:
    plan = join("c", join("a", "b"))
    hop = next(hop for hop in hops(plan) if hop.driver == idle)
    assert choose_driver_order("auto", plan, Allowance({hop: 0.0}), None) == found


def test_without_counted_results_all_lags_are_alike() -> None:
    assert choose_driver_order("auto", MJOIN, NARROW, lags_at(QUERY, 0.0, results=0)) == ("a", "b", "c")


def test_rows_of_one_batch_are_found_by_the_direction_that_looks() -> None:
    """b comes after a, so only b need look; after a crowd of rows in a, the usual order lets b go first."""
    row = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
    plan = join("a", "b")
    crowd = pa.table([pa.array(np.arange(9000)).cast(pa.timestamp("us")), -1 - np.arange(9000)], schema=row)
    found = {}
    for order in ("auto", "initial-output"):
        query = weir.join(
            streams={"a": row, "b": row},
            on="a.k = b.k",
            within="20 seconds",
            plan=plan,
            driver_order=order,
            allowance=Allowance({Hop("a", str(plan), "b"): 0.0}, sample=0.01),
        ).start()
        found[order] = query.process(a=crowd).num_rows
        for batch in range(12):
            keys = np.arange(200) + 200 * batch
            seen = 1_000_000 * batch + 5_000 * np.arange(200)
            early, late = (pa.array(seen + by).cast(pa.timestamp("us")) for by in (0, 500_000))
            rows = {"a": pa.table([early, keys], schema=row), "b": pa.table([late, keys], schema=row)}
            found[order] += query.process(rows).num_rows
    assert found["auto"] == 12 * 200
    assert found["initial-output"] < 0.1 * found["auto"]
