"""The table "change -> what happens at a restart" of docs/spark.md: every row is run as a test on Spark."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "spark.md"
HOLDS = "test_job_changes::test_a_change_holds_from_the_next_batch_on"
REFUSED = "test_job_changes::test_what_the_state_cannot_give_is_refused_in_a_sentence"
# The first cell of each row, and the tests of what its second cell says.
TESTS: dict[str, tuple[str, ...]] = {
    "output columns renamed, dropped or computed anew from kept columns": (
        f"{HOLDS}[renamed and new output columns over kept ones]",
        f"{HOLDS}[fewer output columns]",
        f"{HOLDS}[a key as output column]",
    ),
    "a new output column that the state lacks": (f"{REFUSED}[a column that the state lacks]",),
    "a filter on one stream added or dropped": (
        f"{HOLDS}[a filter on one stream]",
        f"{HOLDS}[a filter less and no freshness]",
    ),
    "a condition over several streams, an equality among them, added or dropped": (
        f"{HOLDS}[one more condition]",
        f"{HOLDS}[one more equality, before the key]",
        f"{HOLDS}[one condition less]",
        f"{REFUSED}[a condition on such a column]",
    ),
    "sides of an equality, order of conditions, arguments instead of a statement": (
        f"{HOLDS}[sides and order of conditions]",
        f"{HOLDS}[as a statement]",
    ),
    "streams in another order": (f"{HOLDS}[streams in another order]",),
    "other streams, another time column or expression, or another type of it": (
        f"{REFUSED}[other streams]",
        f"{REFUSED}[another time column]",
        f"{REFUSED}[another time expression]",
        f"{REFUSED}[another type of the time]",
    ),
    "lateness, `idle`, `ahead`": (f"{HOLDS}[lateness]", f"{HOLDS}[idle and ahead]"),
    "a shorter window": (f"{HOLDS}[a shorter window]", f"{HOLDS}[a window for each stream]"),
    "a longer window": ("test_job_changes::test_a_longer_window_keeps_what_is_still_stored",),
    "a window of rows instead of one of time, or the other way round": (
        f"{REFUSED}[a window of rows]",
        "test_job_changes::test_another_number_of_rows_in_a_window",
    ),
    "windows or time bounds of a join that `atr` divides over several partitions": (
        "test_job_changes::test_segments_of_time_take_another_query_but_no_other_window",
    ),
    "freshness": (
        f"{REFUSED}[freshness]",
        f"{HOLDS}[another freshness]",
        f"{HOLDS}[a filter less and no freshness]",
    ),
    "`clock`": ("test_job_changes::test_another_clock_of_freshness_is_refused",),
    "`budget`, `basic`, `driver_order`, `adapt`, `shed`, `on_null_time`, `durability`, triggers": (
        f"{HOLDS}[settings]",
        "test_job_changes::test_errors_fail_again_and_computed_times_stay",
    ),
    "`on_error`": (
        "test_job_changes::test_a_batch_that_failed_on_data_goes_on_with_null",
        "test_job_changes::test_errors_fail_again_and_computed_times_stay",
    ),
    "another sink": (
        "test_job_changes::test_a_batch_that_had_begun_is_repeated_with_its_query_and_files[sync_results]",
        "test_job_changes::test_a_new_sink_takes_a_begun_batch_of_the_same_query_if_nothing_is_published",
        "test_job_changes::test_a_batch_that_had_begun_for_a_table_is_repeated_there",
        "test_job_changes::test_a_function_takes_a_batch_that_had_begun_only_with_the_columns_it_expects",
    ),
    "a source that grew a column": (
        f"{HOLDS}[a source that grew a column]",
        "test_job_changes::test_a_grown_column_may_become_a_key",
    ),
    "a source that lost a column": (f"{HOLDS}[float to double and a lost column]",),
    "a wider type: `int` to `bigint`, `float` to `double`, `int` to `double`, a decimal with more digits": (
        f"{HOLDS}[int to bigint]",
        f"{HOLDS}[int to double and a wider decimal]",
        f"{HOLDS}[float to double and a lost column]",
        f"{REFUSED}[a key compared as another type]",
    ),
    "any other type of a stored column": (f"{REFUSED}[a narrower type]",),
    "the session's time zone or ANSI mode": ("test_job_changes::test_another_session_is_refused",),
    "`plan`": (
        "test_recovery::test_a_changed_schema_or_plan_is_refused",
        "test_recovery::test_a_restart_keeps_the_plan_though_rates_differ",
    ),
    "the key by which rows are divided over several partitions is no condition any more": (
        f"{REFUSED}[another key]",
        f"{HOLDS}[one partition, where no key divides rows]",
    ),
    "`partitions`": (
        "test_repartition::test_the_number_of_partitions_changes_from_start_to_start",
        "test_recovery::test_a_restart_without_partitions_keeps_those_of_the_checkpoint",
    ),
    "`spread`": (
        "test_spread::test_the_number_of_partitions_may_change_between_two_starts",
        "test_spread::test_a_restart_may_change_the_spread_only_where_the_state_allows_it",
    ),
}


def read_table() -> list[str]:
    """The first cells of the table's rows."""
    _, _, after = DOCS.read_text().partition("| change | what happens at a restart |\n|---|---|\n")
    rows = after.partition("\n\n")[0].splitlines()
    return [row.split("|")[1].strip() for row in rows]


def test_every_row_of_the_table_has_a_test() -> None:
    assert read_table() == list(TESTS)


@pytest.mark.parametrize("test", sorted({test for tests in TESTS.values() for test in tests}))
def test_the_tests_exist(test: str) -> None:
    name, _, case = test.rstrip("]").partition("[")
    module, _, function = name.partition("::")
    found = getattr(import_module(f".{module}", __package__), function)
    marks = [mark for mark in getattr(found, "pytestmark", ()) if mark.name == "parametrize"]
    ids = [str(each) for mark in marks for each in mark.kwargs.get("ids", mark.args[1])]
    assert case in ids if case else True
