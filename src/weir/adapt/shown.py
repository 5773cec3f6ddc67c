"""A decision as progress and `explain` show it."""

from __future__ import annotations

from typing import Any

from weir.kernel import Decision
from weir.shed import Allowance

# More than this is shown as all.
_ALL = 0.9999


def shown(decision: Decision) -> dict[str, Any]:
    """What was fixed for a batch, and why, in words and numbers."""
    allowance = decision.allowance
    return {
        "plan": str(decision.plan),
        "driverOrder": list(decision.driver_order),
        "allowance": None
        if allowance is None
        else {
            "probes": {str(hop): share for hop, share in allowance.probes.items()},
            "choose": allowance.choose,
            "sample": allowance.sample,
        },
        "reason": decision.reason,
    }


def share_lines(allowance: Allowance) -> list[str]:
    """The hops where not all may probe, a line each, and the sample."""
    lines = [f"{hop}: {share:.0%} probe" for hop, share in allowance.probes.items() if share < _ALL]
    return lines + [f"a sample of {100 * allowance.sample:.3g}% passes every hop"] * bool(allowance.sample)
