"""Records as they are made up for tests."""

from typing import Any

from weir_lab.regret.record import Record


def make(batches: int, phase: str = "calm", first: int = 0, **values: Any) -> list[Record]:
    """Batches that are all alike: 100 results, all found, with all of the budget, unless told otherwise."""
    usual: dict[str, Any] = {
        "scenario": "made up",
        "machine": "simulated",
        "lane": "weir",
        "seed": 1,
        "phase": phase,
        "is_steady": True,
        "exact": 100,
        "results": 100,
        "cpu": 0.1,
        "budget": 0.1,
        "bytes": 10,
        "most_bytes": None,
        "told": 1.0,
        "low": 0.95,
        "high": 1.0,
        "plan": "(a b)",
        "sheds": "exact",
        "predicted": 1.0,
    }
    return [Record(batch=first + i, **{**usual, **values}) for i in range(batches)]
