"""The arguments of `weir.join` in each lane."""

from __future__ import annotations

from typing import Any

import weir
from weir_lab.storm.setup import ADAPTIVE, CORES, CPU, Setup
from weir_lab.storm.streams import BASIC, FRESH, ON, SELECT, STREAMS, WINDOW


def join_options(setup: Setup) -> dict[str, Any]:
    """Return the arguments of a lane: its query, and its budget or allowance."""
    asked: dict[str, Any] = {
        "on": ON,
        "select": SELECT,
        "within": format_ticks(WINDOW, setup.interval),
        "basic": format_ticks(BASIC, setup.interval),
        "fresh": {"a": format_ticks(FRESH, setup.interval)},
        "partitions": CORES,
    }
    if setup.lane == ADAPTIVE:
        asked["budget"] = weir.Budget(cpu=CPU, memory=setup.memory)
        # Before there is a clock, batches come as they are taken, and tell nothing of the time they have.
        asked["adapt"] = weir.Adapt(calibrate=setup.warm)
    elif setup.drop:
        asked["allowance"] = weir.Allowance(drop=dict.fromkeys(STREAMS, setup.drop))
    return asked


def format_ticks(ticks: float, interval: float) -> str:
    """Format a number of ticks as an interval of SQL.

    >>> format_ticks(5, 1.5)
    '7500 milliseconds'
    """
    return f"{round(1000 * ticks * interval)} milliseconds"
