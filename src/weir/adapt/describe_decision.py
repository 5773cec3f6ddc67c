"""Describe decisions and allowances for progress, history and `explain`."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import Any

from weir.kernel.decision import Decision
from weir.plan.tree import hops
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
        # The probing order of each driver, e.g. {"a in (a b c)": ["b", "c"]}.
        "orders": {
            f"{driver} in {node}": [hop.partner for hop in path]
            for (driver, node), path in groupby(hops(decision.plan), attrgetter("driver", "node"))
        },
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
        "workCap": decision.work_cap,
        "reason": decision.reason,
    }


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
        f"{'up' if youngest is None else format_interval(youngest)} to {format_interval(oldest + 1)}"
        for youngest, oldest in ages.runs()
    ]
    return ", ".join(ranges) or "none"
