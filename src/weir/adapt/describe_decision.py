"""A decision as progress and `explain` show it."""

from __future__ import annotations

from typing import Any

from weir.kernel.decision import Decision
from weir.plan.tree import Join, hops
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.units import show_interval

# More than this is shown as all.
_ALL = 0.9999


def describe_decision(decision: Decision) -> dict[str, Any]:
    """What was fixed for a batch, and why, in words and numbers."""
    allowance = decision.allowance
    return {
        "plan": str(decision.plan),
        "orders": _orders(decision.plan),
        "driverOrder": order if isinstance(order := decision.driver_order, str) else list(order),
        "allowance": None
        if allowance is None
        else {
            "probes": {str(hop): share for hop, share in allowance.probes.items()},
            "choose": allowance.choose,
            "sample": allowance.sample,
            "ages": {
                str(hop): {"every": show_interval(ages.every), "kept": sorted(ages.kept)}
                for hop, ages in allowance.ages.items()
            },
            "drop": dict(allowance.drop),
            "forget": allowance.forget,
        },
        "reason": decision.reason,
    }


def _orders(plan: Join) -> dict[str, list[str]]:
    """The partners that each driver probes, one after the other, join by join."""
    found: dict[str, list[str]] = {}
    for hop in hops(plan):
        found.setdefault(f"{hop.driver} in {hop.node}", []).append(hop.partner)
    return found


def share_lines(allowance: Allowance) -> list[str]:
    """The hops where not all may probe or not all ages are looked at, a line each, streams and the sample."""
    lines = [
        f"{hop}: {100 * share:.3g}% of the rows that reach it probe"
        for hop, share in allowance.probes.items()
        if share < _ALL
    ]
    lines += [f"{hop}: looks at partners aged {_ranges(ages)}" for hop, ages in allowance.ages.items()]
    lines += [f"{s}: {100 * share:.3g}% dropped" for s, share in allowance.drop.items() if share > 1 - _ALL]
    return lines + [f"a sample of {100 * allowance.sample:.3g}% passes every hop"] * bool(allowance.sample)


def _ranges(ages: Ages) -> str:
    """As in "up to 2 seconds, 6 seconds to 8 seconds"."""
    spans = [
        f"up to {show_interval(oldest + 1)}"
        if youngest is None
        else f"{show_interval(youngest)} to {show_interval(oldest + 1)}"
        for youngest, oldest in ages.runs()
    ]
    return ", ".join(spans) or "none"
