"""`session=` and `on_error=` of joins over tables of this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import weir

TIMES = pa.array([1_714_566_600, 1_714_570_200], pa.timestamp("s", "UTC"))  # 8:30 and 9:30 in New York
A = pa.table({"ts": TIMES, "k": [1, 1], "x": [6, 7]})
B = pa.table({"ts": TIMES, "k": [1, 1], "y": [2, 0]})


def join(on: str, **asked: Any) -> list[Any]:
    select = asked.pop("select", "a.x AS x, b.y AS y")
    return weir.join(a=A, b=B, on=on, within="2 hours", select=select, **asked).to_arrow().to_pylist()


def test_local_times_follow_the_session() -> None:
    new_york = {"timeZone": "America/New_York"}
    assert len(join("a.k = b.k AND hour(a.ts) = 8", session=new_york)) == 2
    assert len(join("a.k = b.k AND a.ts > '2024-05-01 08:45:00'", session=new_york)) == 2
    assert len(join("a.k = b.k AND hour(a.ts) = 8")) == 0


def test_a_difference_of_local_times_is_decided_pair_by_pair() -> None:
    """Clocks go forward between these rows: an hour passes, two on the clock."""
    times = pa.array([1_710_052_200, 1_710_055_800], pa.timestamp("s", "UTC"))
    rows = {"a": pa.table({"ts": times[:1]}), "b": pa.table({"ts": times[1:]})}
    for zone, limit, count in (("UTC", 1, 1), ("America/New_York", 1, 0), ("America/New_York", 2, 1)):
        on = f"b.ts - a.ts <= INTERVAL {limit} HOURS AND b.ts >= a.ts"
        found = weir.join(on=on, session={"timeZone": zone}, select="a.ts AS t", streams=rows)
        assert len(found.to_arrow()) == count


def test_an_expression_that_fails_names_the_row_or_is_null() -> None:
    with pytest.raises(weir.EvaluationError, match=r"a.x / b.y .* b.y = 0: division by zero"):
        join("a.k = b.k AND a.x / b.y > 0")
    with pytest.raises(weir.EvaluationError, match="division by zero"):
        join("a.k = b.k", select="a.x / b.y AS share")
    assert [row["y"] for row in join("a.k = b.k AND a.x / b.y > 0", on_error="null")] == [2, 2]
    shares = {row["share"] for row in join("a.k = b.k", select="a.x / b.y AS share", on_error="null")}
    assert shares == {None, 3.0, 3.5}
    assert len(join("a.k = b.k AND a.x / b.y > 0", session={"ansi": False})) == 2


@pytest.mark.parametrize("never", ["NULL / a.x > a.k", "NULL / a.x > b.y", "1 = 0"])
def test_nothing_fails_where_a_condition_is_never_true(never: str) -> None:
    """Spark's optimiser evaluates nothing then."""
    assert join(f"a.k = 1 div b.y AND {never}") == []
    with pytest.raises(weir.EvaluationError, match="division by zero"):
        join("a.k = 1 div b.y")


def test_a_pair_that_an_earlier_condition_rejects_does_not_fail() -> None:
    assert len(join("a.k = b.k AND b.y <> a.x - a.x AND a.x / b.y > 0")) == 2


@pytest.mark.parametrize("on", ["a.k = b.k AND 1 / b.y > 0", "a.k = 2 / b.y"])
def test_a_filter_and_a_key_fail_alike(on: str) -> None:
    with pytest.raises(weir.EvaluationError, match=r"b\.y = 0: division by zero"):
        join(on)
    assert {row["y"] for row in join(on, on_error="null")} == {2}


@pytest.mark.parametrize(("asked", "message"), [
    ({"session": {"timeZone": "Mars/Olympus"}}, "unknown time zone 'Mars/Olympus'"),
    ({"session": {"timezone": "UTC"}}, "unknown key 'timezone' in session=; did you mean 'timeZone'"),
    ({"session": {"ansi": "no"}}, "ansi is True or False; got 'no'"),
    ({"session": "UTC"}, "session= is written"),
    ({"on_error": "ignore"}, "on_error is 'fail', 'null' or 'quarantine'; got 'ignore'"),
])  # fmt: skip
def test_a_wrong_setting_is_named(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(weir.QueryError) as error:
        join("a.k = b.k", **asked)
    assert message in str(error.value)
