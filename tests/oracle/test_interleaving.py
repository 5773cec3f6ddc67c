"""Driver orders that interleave the rows of streams: every plan, batching and kind of window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis.strategies import SearchStrategy

from weir.order.policies import INTERLEAVING_POLICIES, DriverPolicy

from . import test_composed, test_relational, test_row_windows
from .case import Case
from .composed import composed
from .generate import relational, row_windows
from .reference import Results
from .run import explore

KINDS = {
    "relational": (relational(), test_relational.check),
    "row windows": (row_windows(), test_row_windows.check),
    "composed": (composed(), test_composed.check),
}


@pytest.mark.parametrize(("cases", "check"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("policy", INTERLEAVING_POLICIES)
def test_interleaved_rows_give_every_result_once(
    policy: DriverPolicy, cases: SearchStrategy[Case], check: Callable[[Case], Results]
) -> None:
    explore(cases.map(lambda case: replace(case, driver_order=policy)), check, examples=60)
