"""Describe decisions and allowances for progress, history and `explain`."""

from __future__ import annotations

from typing import Any

from weir.kernel.decision import Decision
from weir.plan.tree import Join, hops
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.units import format_interval

# A hop with a larger share of probes counts as unrestricted, as does a stream with a smaller share of drops.
_ALMOST_ALL = 0.9999


def describe_decision(decision: Decision) -> dict[str, Any]:
    """Return the decision of a batch as JSON values."""
    allowance, order = decision.allowance, decision.driver_order
    return {
        "plan": str(decision.plan),
        "orders": _describe_orders(decision.plan),
        "driverOrder": order if isinstance(order, str) else list(order),
        "allowance": None
        if allowance is None
        else {
            "probes": {str(hop): share for hop, share in allowance.probes.items()},
            "choose": allowance.choose,
            "sample": allowance.sample,
            "ages": {
                str(hop): {"every": format_interval(ages.every), "kept": sorted(ages.kept)}
                for hop, ages in allowance.ages.items()
            },
            "drop": dict(allowance.drop),
        },
        "reason": decision.reason,
    }


def _describe_orders(plan: Join) -> dict[str, list[str]]:
    """Return the probing order of each driver, e.g. {"a in (a b c)": ["b", "c"]}."""
    orders: dict[str, list[str]] = {}
    for hop in hops(plan):
        orders.setdefault(f"{hop.driver} in {hop.node}", []).append(hop.partner)
    return orders


def describe_allowance(allowance: Allowance) -> list[str]:
    """Return a line for each restriction, e.g. "a ⋉ b in (a b): 25% of arriving rows probe"."""
    lines = [
        f"{hop}: {100 * share:.3g}% of arriving rows probe"
        for hop, share in allowance.probes.items()
        if share < _ALMOST_ALL
    ]
    lines += [f"{hop}: probes partners aged {_describe_ages(ages)}" for hop, ages in allowance.ages.items()]
    lines += [
        f"{stream}: {100 * share:.3g}% of rows dropped"
        for stream, share in allowance.drop.items()
        if share > 1 - _ALMOST_ALL
    ]
    if allowance.sample:
        lines.append(f"sample: {100 * allowance.sample:.3g}% of rows probe everything")
    return lines


def _describe_ages(ages: Ages) -> str:
    """Return the allowed ages, e.g. "up to 2 seconds, 6 seconds to 8 seconds"."""
    ranges = [
        f"up to {format_interval(oldest + 1)}"
        if youngest is None
        else f"{format_interval(youngest)} to {format_interval(oldest + 1)}"
        for youngest, oldest in ages.runs()
    ]
    return ", ".join(ranges) or "none"
