from __future__ import annotations

import pytest
from tests.adapt.tables import asked, table

from weir.adapt import table_statistics
from weir.adapt.table_statistics import measure_tables


def test_tables_give_rates_and_selectivities() -> None:
    tables = {"a": table(2000, 50, 1), "b": table(1000, 50, 2), "c": table(500, 50, 3)}
    joined = asked("a.k = b.k AND abs(b.v - c.v) <= 0.1 AND a.v < 0.5")
    measured = measure_tables(joined, tables)
    assert measured is not None
    assert measured.rates["b"] == pytest.approx(10, rel=0.02)
    assert measured.rates["a"] == pytest.approx(10, rel=0.1), "half of the rows pass the filter"
    assert measured.selectivities[frozenset("ab")] == pytest.approx(1 / 50, rel=0.05)
    assert measured.selectivities[frozenset("bc")] == pytest.approx(0.19, rel=0.1)


def test_empty_tables_and_a_single_time_give_nothing() -> None:
    joined = asked("a.k = b.k", names="ab")
    assert measure_tables(joined, {"a": table(10, 5, 1), "b": table(0, 5, 2)}) is None
    assert measure_tables(joined, {"a": table(1, 5, 1, 1), "b": table(1, 5, 1, 1)}) is None


def test_of_a_large_table_some_rows_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {"a": table(1000, 5, 1), "b": table(900, 5, 2)}
    joined = asked("a.k = b.k", names="ab")
    whole = measure_tables(joined, tables)
    monkeypatch.setattr(table_statistics, "BYTES", tables["a"].nbytes // 3)
    sampled = measure_tables(joined, tables)
    assert whole is not None
    assert sampled is not None
    for name in "ab":
        assert sampled.rates[name] == pytest.approx(whole.rates[name], rel=0.05)
    (pair,) = whole.selectivities
    assert sampled.selectivities[pair] == pytest.approx(whole.selectivities[pair], rel=0.1)
    assert sampled != whole
