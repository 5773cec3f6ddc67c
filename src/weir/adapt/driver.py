"""Whose rows find the results of a batch, where not everything is looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from weir.order import DriverOrder
from weir.plan import Join, JTree, Leaf
from weir.shed import Allowance
from weir.stats import Correlations


def driver_order(
    wanted: DriverOrder, plan: Join, allowance: Allowance | None, lags: Correlations | None
) -> DriverOrder:
    """The order asked for or, if that is left to us, one in which those come last who look for partners.

    Of rows that came in one batch the one that is processed last finds the others, so inputs whose probes
    are all skipped go first. Where ages are skipped, the others go by their lags: harvesting takes the row of
    the latest time to find a result (002, section IV-B).
    """
    if wanted != "auto" or allowance is None:
        return wanted
    idle = {hop.driver for hop, share in allowance.probes.items() if not share}
    if not idle and (lags is None or not allowance.ages):
        return wanted
    late = {name: 0.0 if lags is None else lags.mean(name) for name in plan.streams}
    return tuple(_ordered(plan, idle, late))


def _ordered(node: JTree, idle: Collection[str], late: Mapping[str, float]) -> Iterator[str]:
    """The streams below a node: of every join first those of the inputs that do not look."""
    if isinstance(node, Leaf):
        yield node.stream
        return
    # Ages are skipped in an mjoin only, so of other inputs than streams no lag is asked for.
    for child in sorted(node.inputs, key=lambda one: (str(one) not in idle, late.get(str(one), 0.0))):
        yield from _ordered(child, idle, late)
