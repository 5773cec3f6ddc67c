"""A batch that is taken in and stored piece by piece gives what the references say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis.strategies import SearchStrategy

from weir.kernel import half_join, ingest, intermediate_state, spill, split_partial, split_table

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


class Pieces:
    """Counts the batches and the outputs of joins that came in several pieces."""

    tables = outputs = 0

    def split(self, table: object) -> list[object]:
        pieces = split_table.split_table(table)
        self.tables += len(pieces) > 1
        return pieces

    def take(self, chunks: Iterator[object]) -> Iterator[list[object]]:
        runs = 0
        for run in spill.take_runs(chunks):
            runs += 1
            yield run
        self.outputs += runs > 1


@contextmanager
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pieces]:
    """A few hundred bytes are many now."""
    pieces = Pieces()
    with monkeypatch.context() as patch:
        patch.setattr(split_table, "BYTES", 300)
        patch.setattr(spill, "SPILL_BYTES", 100)
        patch.setattr(split_partial, "BYTES", 150)
        patch.setattr(half_join, "_RANGES", 8)
        patch.setattr(half_join, "_CANDIDATES", 16)
        patch.setattr(half_join, "_CANDIDATES_EVALUATED", 16)
        patch.setattr(ingest, "split_table", pieces.split)
        patch.setattr(intermediate_state, "take_runs", pieces.take)
        yield pieces


@pytest.mark.parametrize(("cases", "check"), KINDS.values(), ids=KINDS)
def test_pieces_give_every_result_once(
    cases: SearchStrategy[Case], check: Callable[[Case], Results], monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_pieces(monkeypatch) as pieces:
        explore(cases, check, examples=40, share=0.3)
    assert pieces.tables >= 15
    assert pieces.outputs >= 5


def test_rows_of_pieces_keep_their_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a policy interleaves streams, some pieces have one rank and others a rank per row."""
    cases = relational().map(lambda case: replace(case, driver_order="timestamp"))
    with small_pieces(monkeypatch) as pieces:
        explore(cases, test_relational.check, examples=20)
    assert pieces.tables >= 15
