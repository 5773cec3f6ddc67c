from __future__ import annotations

import json

import pytest

from weir.adapt.cost_fit import Measurement, Work
from weir.adapt.load import Load
from weir.codec import from_json, to_json


def batch(root: float, kept: float = 1.0) -> Measurement:
    return Measurement(Work(kept, root), kept, root)


def test_thinned_batches_show_the_work_of_all_rows() -> None:
    load = Load().after("p", batch(8.0), 1.0, 1.0).after("p", batch(4.0), 0.5, 1.0)
    assert load.forecast("p", is_changing=False) == Work(1.0, 8.0)
    assert load.forecast("other", is_changing=False) is None


def test_windows_that_fill_up_or_drain_go_on_as_they_went() -> None:
    def forecast(before: float, last: float) -> float:
        load = Load().after("p", batch(before), 1.0, 1.0).after("p", batch(last), 1.0, 1.0)
        work = load.forecast("p", is_changing=True)
        assert work is not None
        return work.root

    assert forecast(2.0, 3.0) == pytest.approx(4.0)
    assert forecast(4.0, 3.0) == pytest.approx(2.0)
    assert forecast(1.0, 9.0) == pytest.approx(17.0) and forecast(9.0, 1.0) == pytest.approx(0.5)


def test_only_the_last_decisions_are_remembered() -> None:
    load = Load()
    for number in range(20):
        load = load.after(f"p{number}", batch(1.0), 1.0, 1.0)
    assert len(load.fits) == len(load.works) == 6 and "p19" in load.fits
    assert load.fit("unknown") == load.fits["p19"], "of another plan, what the last one has shown"
    assert from_json(Load, json.loads(json.dumps(to_json(load)))) == load


def test_the_balance_ends_with_shedding() -> None:
    load = Load()
    for _ in range(20):
        load = load.balance(1.1)
    assert load.spent == (1.1,) * 9
    assert load.balance(None).spent == ()
