"""What each lane asks of weir."""

from __future__ import annotations

from typing import Any

import weir
from weir_lab.storm.setup import ADAPTIVE, CORES, CPU, Setup
from weir_lab.storm.streams import BASIC, FRESH, ON, SELECT, STREAMS, WINDOW


def how(setup: Setup) -> dict[str, Any]:
    """The join of a lane: what it asks, and what it may use."""
    asked: dict[str, Any] = {
        "on": ON,
        "select": SELECT,
        "within": span(WINDOW, setup.interval),
        "basic": span(BASIC, setup.interval),
        "fresh": {"a": span(FRESH, setup.interval)},
        "partitions": CORES,
    }
    if setup.lane == ADAPTIVE:
        asked["budget"] = weir.Budget(cpu=CPU, memory=setup.memory)
        # Before there is a clock, batches come as they are taken, and tell nothing of the time they have.
        asked["adapt"] = weir.Adapt(calibrate=setup.warm)
    elif setup.drop:
        asked["allowance"] = weir.Allowance(drop=dict.fromkeys(STREAMS, setup.drop))
    return asked


def span(ticks: float, interval: float) -> str:
    """So many ticks as an interval of SQL.

    >>> span(5, 1.5)
    '7500 milliseconds'
    """
    return f"{round(1000 * ticks * interval)} milliseconds"
