"""Vector similarity: find pairs of vectors with a high cosine by one matrix product per slice."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Expr
from weir.kernel.partial import Picks
from weir.kernel.slice import Slice

Matrix = npt.NDArray[np.float32]


def unit_vectors(values: pa.Array) -> Matrix:
    """Return vectors as rows of a matrix, scaled to length one; short ones are padded with zeros.

    A vector without a direction (null, zero or not finite) becomes NaN, which is similar to nothing.
    """
    rows = _pad(values)
    with np.errstate(invalid="ignore"):
        peak = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))
    peak = np.where(np.isfinite(peak) & (peak > 0), peak, np.nan)
    # Divide by the largest item first: squares of very long or very short vectors overflow or underflow.
    unit: Matrix = (rows / peak[:, None]).astype(np.float32, copy=False)
    unit /= np.sqrt(np.einsum("ij,ij->i", unit, unit))[:, None]
    return unit


def _pad(values: pa.Array) -> npt.NDArray[Any]:
    lengths = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    flat = values.flatten().fill_null(0.0).to_numpy(zero_copy_only=False)
    width = int(lengths.max(initial=0))
    if len(flat) == len(lengths) * width:
        return np.asarray(flat.reshape(len(lengths), width))
    rows = np.zeros((len(lengths), width), flat.dtype)
    rows[np.arange(width) < lengths[:, None]] = flat
    return rows


def slice_vectors(slice_: Slice, expr: Expr) -> Matrix:
    """Return the unit vectors of a slice, computed once."""
    return slice_.cached(("vectors", expr), lambda: unit_vectors(evaluate(expr, slice_.fetch, slice_.rows)))


def similar_pairs(probe: Matrix, value: Matrix, threshold: float) -> tuple[Picks, Picks]:
    """Return the pairs whose cosine may reach the threshold; rounding errs on the side of more pairs."""
    width = min(probe.shape[1], value.shape[1])
    slack = 4e-7 * np.sqrt(width) + 1e-6
    cosines = probe[:, :width] @ value[:, :width].T
    hits = np.flatnonzero(cosines.ravel() >= np.float32(min(max(threshold, -2), 2) - slack))
    return np.divmod(hits, max(value.shape[0], 1))
