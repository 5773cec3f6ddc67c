"""The local engine does what it did: decisions, results, states and counts of every batch."""

from __future__ import annotations

import pytest

from . import names
from .record import check
from .runs import BOTH, LOCAL, Run, on_local

RUNS = {**BOTH, **LOCAL}


@pytest.mark.parametrize(("name", "run"), RUNS.items(), ids=RUNS)
def test_local(name: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names.little_migration(monkeypatch, 150)
    found = on_local(run)
    assert sum(one["results"]["rows"] for one in found["batches"]) > 20, (
        "a run that finds little shows little"
    )
    check(f"local-{name}", found)
