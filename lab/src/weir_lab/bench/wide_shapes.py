"""Shapes with many results or wide rows in one batch, and the exact number of results of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from weir_lab.bench.feed import START
from weir_lab.bench.shape_tables import Kind, Shape

_MEGABYTE = 1 << 20
# Rows are a millisecond apart.
_STEP = 0.001


@dataclass(frozen=True, slots=True)
class WideShape:
    """A shape and how many results it has, by arithmetic."""

    shape: Shape
    results: int


def hot_key(rows: int) -> WideShape:
    """All rows have one key: every row of one stream joins every row of the other."""
    tables = {"a": _table(2 * rows), "b": _table(rows)}
    return _inside_one_window("one hot key", "hot", tables, 2 * rows * rows)


def cross(rows: int, window_rows: int) -> WideShape:
    """No condition but the window, which is shorter than the data."""
    tables = {"a": _table(rows), "b": _table(rows)}
    shape = Shape("cross join", "dense", tables, None, window_rows * _STEP)
    return WideShape(shape, count_neighbours(rows, window_rows))


def count_neighbours(rows: int, window_rows: int) -> int:
    """How many pairs of `rows` and `rows` numbers are less than `window_rows` apart.

    >>> count_neighbours(3, 2)  # 00 01 10 11 12 21 22
    7
    """
    return rows * (2 * window_rows - 1) - window_rows * (window_rows - 1)


def megabytes(rows: int) -> WideShape:
    """Every value is a megabyte, and all rows have one key."""
    tables = {name: _table(rows, wide=range(rows)) for name in "ab"}
    return _inside_one_window("rows of 1 MB", "wide", tables, rows * rows)


def few_wide(rows: int) -> WideShape:
    """One row in a hundred is a megabyte wide, and only such rows have partners: a mean tells nothing."""
    is_wide = range(0, rows, 100)
    keys = np.full(rows, -1)
    keys[is_wide] = 0
    tables = {"a": _table(rows, keys, is_wide), "b": _table(rows // 40)}
    return _inside_one_window("1 MB in every 100th row", "wide", tables, len(is_wide) * (rows // 40))


_Makers = Mapping[str, Callable[[], WideShape]]
SHAPES: _Makers = {
    "hot": partial(hot_key, 5_000),
    "cross": partial(cross, 20_000, 1_293),
    "megabytes": partial(megabytes, 100),
    "few": partial(few_wide, 8_000),
}
QUICK_SHAPES: _Makers = {
    "hot": partial(hot_key, 1_000),
    "cross": partial(cross, 4_000, 300),
    "megabytes": partial(megabytes, 20),
    "few": partial(few_wide, 2_000),
}


def _inside_one_window(name: str, kind: Kind, tables: Mapping[str, pa.Table], results: int) -> WideShape:
    return WideShape(Shape(name, kind, tables, "a.k = b.k", 3_600), results)


def _table(
    rows: int, keys: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None, wide: range = range(0)
) -> pa.Table:
    micros = START * 1_000_000 + np.arange(rows) * round(_STEP * 1e6)
    rng = np.random.default_rng(rows)
    texts = [f"{rng.bytes(512).hex()}" for _ in wide]
    values = ["narrow"] * rows
    for row, text in zip(wide, texts, strict=True):
        values[row] = text * (_MEGABYTE // len(text))
    return pa.table(
        {
            "ts": pa.array(micros).cast(pa.timestamp("us")),
            "k": np.zeros(rows, np.int64) if keys is None else keys,
            "x": values if len(wide) else rng.random(rows),
        }
    )
