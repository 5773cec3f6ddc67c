"""Choose the driver order of a batch that sheds: streams that probe least go first.

Of rows that arrive in one batch, the row processed last finds the others. So a stream whose probes are
skipped must go first, where others find its rows, or results between rows of one batch would be lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weir.order.policies import DriverOrder
from weir.plan.tree import Join, JTree, Leaf
from weir.shed.allowance import Allowance
from weir.stats.lag_histogram import LagHistograms


def choose_driver_order(
    wanted: DriverOrder, plan: Join, allowance: Allowance | None, lags: LagHistograms | None
) -> DriverOrder:
    """Return the requested order or, for "auto" with probes or ages skipped, the best order for that.

    With probes skipped, inputs go in the order of the share that still probes. With ages skipped, inputs that
    do not probe at all go first and the others by their mean lag, because harvesting expects the latest row
    of a result to find it (Gedik et al. 2007, section IV-B).
    """
    if wanted != "auto" or allowance is None:
        return wanted
    probing: dict[str, float] = {}
    for hop, share in allowance.probes.items():
        probing[hop.driver] = probing.get(hop.driver, 1.0) * (float(share > 0) if allowance.ages else share)
    if min(probing.values(), default=1.0) >= 1 and (lags is None or not allowance.ages):
        return wanted
    mean_lags = {name: 0.0 if lags is None else lags.mean_lag(name) for name in plan.streams}
    return tuple(_order_streams(plan, probing, mean_lags))


def _order_streams(node: JTree, probing: Mapping[str, float], lags: Mapping[str, float]) -> Iterator[str]:
    """Yield the streams below a node, input by input, those that probe least first."""
    if isinstance(node, Leaf):
        yield node.stream
        return

    def rank(child: JTree) -> tuple[float, float]:
        # Inputs that are joins have no lag; they need none, since ages are skipped in mjoins only.
        return probing.get(str(child), 1.0), lags.get(str(child), 0.0)

    for child in sorted(node.inputs, key=rank):
        yield from _order_streams(child, probing, lags)
