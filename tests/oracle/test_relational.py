"""Any plan over any batches gives the relational join of the rows that are not late."""

from __future__ import annotations

from .case import Case
from .generate import relational
from .reference import Results, admit, by_duckdb, by_product, timed
from .run import compare, compare_dropped, explore, run_batches, run_whole

SMALL = 2_000  # combinations that a product may look at


def check(case: Case) -> Results:
    admitted = admit(case)
    kept = {name: [row for _, row in rows] for name, rows in admitted.rows.items()}
    wanted = by_duckdb(case, kept)
    found, dropped = run_batches(case)
    compare(found, wanted)
    compare_dropped(dropped, admitted)
    compare(run_whole(case), by_duckdb(case, timed(case)))
    return wanted


def test_every_plan_gives_the_relational_join() -> None:
    explore(relational(), check, examples=300)


def test_the_two_references_agree() -> None:
    def check(case: Case) -> Results:
        rows = {name: found[:8] for name, found in timed(case).items()}
        wanted = by_duckdb(case, rows)
        if all(condition.check for condition in case.conditions) and 8 ** len(case.names) <= SMALL * 3:
            compare(by_product(case, rows), wanted)
        return wanted

    explore(relational(), check, examples=60, share=0.2)
