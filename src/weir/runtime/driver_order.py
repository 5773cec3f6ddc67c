"""Whose rows find the results of a batch, where not everything is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weir.order.policies import DriverOrder
from weir.plan.tree import Join, JTree, Leaf
from weir.shed.allowance import Allowance
from weir.stats.lag_histogram import LagHistograms


def driver_order(
    wanted: DriverOrder, plan: Join, allowance: Allowance | None, lags: LagHistograms | None
) -> DriverOrder:
    """The order asked for or, if that is left to us, one in which those come last who look for partners.

    Of rows that came in one batch the one that is processed last finds the others, so inputs go first of
    which more probes are skipped. Where ages are skipped, only those do that have none left, and the others
    go by their lags: harvesting expects the latest row of a result to find it (Gedik et al. 2007, section
    IV-B).
    """
    if wanted != "auto" or allowance is None:
        return wanted
    looks: dict[str, float] = {}
    for hop, share in allowance.probes.items():
        looks[hop.driver] = looks.get(hop.driver, 1.0) * (float(share > 0) if allowance.ages else share)
    if min(looks.values(), default=1.0) >= 1 and (lags is None or not allowance.ages):
        return wanted
    late = {name: 0.0 if lags is None else lags.mean(name) for name in plan.streams}
    return tuple(_ordered(plan, looks, late))


def _ordered(node: JTree, looks: Mapping[str, float], late: Mapping[str, float]) -> Iterator[str]:
    """The streams below a node: of every join first those of the inputs that look least."""
    if isinstance(node, Leaf):
        yield node.stream
        return
    # Ages are skipped in an mjoin only, so of other inputs than streams no lag is asked for.
    for child in sorted(node.inputs, key=lambda one: (looks.get(str(one), 1.0), late.get(str(one), 0.0))):
        yield from _ordered(child, looks, late)
