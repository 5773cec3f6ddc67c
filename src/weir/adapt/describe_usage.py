"""Describe CPU and memory for reasons, warnings and `explain`."""

from __future__ import annotations

import math

from weir.plan.explain import format_bytes, format_share
from weir.plan.limits import Limits


def describe_usage(cpu: float, memory: float) -> str:
    """Return both figures, infinite ones as no limit, e.g. "CPU 12%, state 3 MiB"."""
    shown_cpu = "any CPU" if math.isinf(cpu) else f"CPU {format_share(cpu)}"
    shown_memory = "any memory" if math.isinf(memory) else f"state {format_bytes(memory)}"
    return f"{shown_cpu}, {shown_memory}"


def compare_usage(cpu: float, memory: float, limits: Limits) -> str:
    """Return what is limited beside its limit, e.g. "CPU 71% (limit 40%)"; without limits, the CPU."""
    used = []
    if not math.isinf(limits.cpu):
        used.append(f"CPU {format_share(cpu)} (limit {format_share(limits.cpu)})")
    if not math.isinf(limits.memory):
        used.append(f"state {format_bytes(memory)} (limit {format_bytes(limits.memory)})")
    return " and ".join(used) or f"CPU {format_share(cpu)}"
