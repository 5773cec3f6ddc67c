"""Windows of the last n rows, alone and beside time windows, in every plan."""

from __future__ import annotations

from random import Random

from .case import Case
from .generate import row_windows, stirred, ties
from .reference import Results, admit, by_product, in_lines
from .run import compare, compare_dropped, explore, run_batches


def check(case: Case) -> Results:
    admitted = admit(case)
    kept = {name: [row for _, row in rows] for name, rows in admitted.rows.items()}
    wanted = by_product(case, kept, in_lines(case, admitted))
    found, dropped = run_batches(case)
    compare(found, wanted)
    compare_dropped(dropped, admitted)
    return wanted


def test_row_windows() -> None:
    explore(row_windows(), check, examples=120)


def test_the_order_of_rows_within_a_batch_does_not_matter() -> None:
    def check(case: Case) -> Results:
        wanted, _ = run_batches(case)
        found, _ = run_batches(stirred(case, Random(0)))
        compare(found, wanted)
        return wanted

    explore(ties(), check, examples=60)
