"""Whose rows find the results of a batch, where not everything is looked at."""

from __future__ import annotations

from weir.order import DriverOrder
from weir.plan import Join
from weir.shed import Allowance
from weir.stats import Correlations


def driver_order(
    wanted: DriverOrder, plan: Join, allowance: Allowance | None, lags: Correlations | None
) -> DriverOrder:
    """The order asked for or, if that is left to us, one in which those come last who look for partners.

    Of rows that came in one batch the one that is processed last finds the others, so streams whose probes
    are all skipped go first. Where ages are skipped, the others go by their lags: harvesting takes the row of
    the latest time to find a result (002, section IV-B).
    """
    if wanted != "auto" or allowance is None:
        return wanted
    idle = {hop.driver for hop, share in allowance.probes.items() if not share}
    if not idle and (lags is None or not allowance.ages):
        return wanted
    late = {name: 0.0 if lags is None else lags.mean(name) for name in plan.streams}
    return tuple(sorted(plan.streams, key=lambda name: (name not in idle, late[name])))
