"""Key probe: search the keys of driver rows in slices, and verify keys whose codes are hashes.

Codes of long text, wide decimals, null-safe keys and of several keys together are hashed, so equal codes are
verified on the values: once for each driver row and slice, where all rows of a slice with one code have one
key; pair by pair in the rare slice where they have not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.evaluate import evaluate, evaluate_predicate
from weir.expr.nodes import Call
from weir.kernel.access_path import KeyAccess
from weir.kernel.index import KeyIndex
from weir.kernel.keys import Bools, Int64s, combine, is_exact
from weir.kernel.partial import Group, Partial, Picks, Rows
from weir.kernel.physical_plan import HalfJoinPlan
from weir.kernel.slice import Slice
from weir.kernel.state_schema import get_member


class KeyProbe:
    """The keys of a partial's rows on their way into the slices of one partner."""

    def __init__(self, plan: HalfJoinPlan, access: KeyAccess, partial: Partial) -> None:
        self._plan, self._access, self._partial = plan, access, partial
        self._is_hashed = bool(plan.verify) or len(access.classes) > 1
        self._repeated = _find_repeated_rows(access, partial)

    @cached_property
    def _all_keys(self) -> _Keys:
        return _Keys(self._plan, self._access, self._partial)

    @cached_property
    def _distinct_keys(self) -> _Keys:
        assert self._repeated is not None
        rows = self._repeated.rows
        return _Keys(self._plan, self._access, Partial((Group(rows),), rows.count))

    def find_ranks(self, source: Slice, index: KeyIndex, run: slice) -> tuple[Int64s, Bools]:
        """Return the rank of each driver row's key in a slice, and which rows have a key there.

        Each key is searched once: the rows of a partial often repeat those of a shorter one.
        """
        verify = self._is_hashed and self._is_pure(source)
        if self._repeated is None or run.stop - run.start < self._partial.rows:
            return self._all_keys.find_ranks(source, index, run, verify)
        keys, picks = self._distinct_keys, self._repeated.picks
        ranks, present = keys.find_ranks(source, index, slice(0, self._repeated.rows.count), verify)
        return ranks[picks], present[picks]

    def check_pairs(self, source: Slice) -> Callable[[Picks, Picks], Bools] | None:
        """Return the check that pairs with a slice need; None if their codes or `find_ranks` decide."""
        if not self._is_hashed or self._is_pure(source):
            return None
        return lambda driver, row: self._all_keys.verify(driver, Rows(source.schema, [(source, row)]))

    def _is_pure(self, source: Slice) -> bool:
        """True if rows of a slice with equal codes have equal keys."""
        return source.cached(("is_pure", self._access.spec), lambda: self._compare_neighbours(source))

    def _compare_neighbours(self, source: Slice) -> bool:
        index = source.index(self._access.spec)
        same = np.flatnonzero(index.values[1:] == index.values[:-1])
        first, second = index.pick(same), index.pick(same + 1)
        if len(self._access.classes) > 1:
            for name in self._access.names:
                codes = source.numbers(name)
                if (codes[first] != codes[second]).any():
                    return False
        for i, equality in self._plan.verify:
            codes = source.numbers(self._access.names[i])[first]
            c = self._access.classes[i]
            hashed = pa.array(np.flatnonzero(~is_exact(codes, c.domain, c.null_safe)))
            values = evaluate(equality.args[1], source.fetch, source.rows)
            left, right = (values.take(pa.array(rows).take(hashed)) for rows in (first, second))
            if not pc.all(pc.equal(left, right).fill_null(False)).as_py() and len(hashed):
                return False
        return True


class _Keys:
    """The key codes of some driver rows, and how to verify them."""

    def __init__(self, plan: HalfJoinPlan, access: KeyAccess, partial: Partial) -> None:
        self._access, self._partial, self._partner = access, partial, plan.partner
        self._codes, self._valid = access.codes(partial)
        self._code = combine(self._codes)
        self._verify = [(i, _read_from(equality, i, access, partial)) for i, equality in plan.verify]

    def find_ranks(self, source: Slice, index: KeyIndex, run: slice, verify: bool) -> tuple[Int64s, Bools]:
        valid = None if self._valid is None else self._valid[run]
        ranks, present = index.find_ranks(self._code[run], valid)
        if verify and present.any():
            rows = np.flatnonzero(present)
            first_of_key = source.index(self._access.spec).pick(index.starts[ranks[rows]])
            present[rows] = self.verify(rows + run.start, Rows(self._partner, [(source, first_of_key)]))
        return ranks, present

    def verify(self, driver: Picks, rows: Rows) -> Bools:
        """Tell which pairs have equal keys."""
        keep = np.ones(len(driver), np.bool_)
        if len(self._access.classes) > 1:
            for codes, name in zip(self._codes, self._access.names, strict=True):
                keep &= codes[driver] == rows.numbers(name)
        for i, equality in self._verify:
            c = self._access.classes[i]
            hashed = np.flatnonzero(keep & ~is_exact(self._codes[i][driver], c.domain, c.null_safe))
            if len(hashed):
                pairs = self._partial.extend(driver, rows).pick(hashed)
                keep[hashed] = evaluate_predicate(equality, pairs.fetch, pairs.rows)
        return keep


def _find_repeated_rows(access: KeyAccess, partial: Partial) -> Group | None:
    """Return the group that the key is read from, if the partial repeats its rows."""
    group = partial.find_group(access.names[0]) if len(access.names) == 1 else None
    if group is None or group.picks is None or group.rows.count >= partial.rows:
        return None
    return group


def _read_from(equality: Call, i: int, access: KeyAccess, partial: Partial) -> Call:
    """Read the driver's key from the group that stores its code: equal keys are equal in every group."""
    group = partial.find_group(access.names[i])
    if group is None:
        return equality
    return replace(equality, args=(get_member(access.classes[i], group.schema.streams), equality.args[1]))
