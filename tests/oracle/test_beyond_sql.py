"""Similar vectors and users' functions, against a product of all rows."""

from __future__ import annotations

from .case import Case
from .generate import beyond_sql
from .reference import Results, admit, by_product, timed
from .run import compare, compare_dropped, explore, run_batches, run_whole


def check(case: Case) -> Results:
    admitted = admit(case)
    wanted = by_product(case, {name: [row for _, row in rows] for name, rows in admitted.rows.items()})
    found, dropped = run_batches(case)
    compare(found, wanted)
    compare_dropped(dropped, admitted)
    compare(run_whole(case), by_product(case, timed(case)))
    return wanted


def test_vectors_and_functions() -> None:
    explore(beyond_sql(), check, examples=80)
