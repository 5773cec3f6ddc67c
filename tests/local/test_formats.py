"""Tables in every format: the same results from each, in the format in which the tables came in."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.errors import QueryError
from weir.local.hints import JOIN_HINTS, QUERY_HINTS
from weir.local.join import LocalJoin

from .tables import GOOD, STATEMENT, A, B, refused

NOON = datetime(2024, 1, 2, 12)
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "n": pa.int64()})
SELECT = "a.k, a.n AS an, b.n AS bn"


def cut(table: pa.Table) -> list[pa.Table]:
    half = table.num_rows // 2
    return [table.slice(0, half), table.slice(half)]


FORMATS: dict[str, tuple[Callable[[pa.Table], Any], type]] = {
    "arrow": (lambda table: table, pa.Table),
    "reader": (pa.Table.to_reader, pa.Table),
    "record batches": (lambda table: (batch for batch in table.to_batches() or cut(table)), pa.Table),
    "polars": (pl.DataFrame, pl.DataFrame),
    "lazy": (lambda table: pl.DataFrame(table).lazy(), pl.DataFrame),
    "polars in parts": (lambda table: map(pl.DataFrame, cut(table)), pl.DataFrame),
    "pandas": (pa.Table.to_pandas, pd.DataFrame),
    "pandas in parts": (lambda table: (part.to_pandas() for part in cut(table)), pd.DataFrame),
    "dicts": (pa.Table.to_pylist, list),
    "generator": (lambda table: (row for row in table.to_pylist()), list),
    "tuple of dicts": (lambda table: tuple(table.to_pylist()), list),
    "duckdb": (lambda table: duckdb.arrow(table), pa.Table),
}


def rows_of(results: Any) -> Counter[tuple[int, ...]]:
    """The results in any format as tuples."""
    if isinstance(results, pd.DataFrame):
        return Counter(results.itertuples(index=False, name=None))
    if isinstance(results, pl.DataFrame):
        return Counter(results.rows())
    return Counter(
        tuple(row.values()) for row in (results if isinstance(results, list) else results.to_pylist())
    )


def ask_duckdb(a: pa.Table, b: pa.Table) -> Counter[tuple[int, ...]]:
    with duckdb.connect() as database:
        database.register("a", a)
        database.register("b", b)
        late = "abs(epoch_us(a.ts) - epoch_us(b.ts)) < 3000000"
        return Counter(database.sql(f"SELECT {SELECT} FROM a, b WHERE a.k = b.k AND {late}").fetchall())


TABLES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=12).map(
    lambda rows: pa.Table.from_pylist(
        [{"ts": NOON + timedelta(seconds=s), "k": k, "n": n} for n, (s, k) in enumerate(rows)], SCHEMA
    )
)


def test_every_format_gives_what_duckdb_gives() -> None:
    non_empty = []

    @given(TABLES, TABLES, st.sampled_from(sorted(FORMATS)))
    @settings(max_examples=60, deadline=None)
    def check(a: pa.Table, b: pa.Table, name: str) -> None:
        give, kind = FORMATS[name]
        made = weir.join(a=give(a), b=give(b), on="a.k = b.k", within="3 seconds", select=SELECT)
        expected, results = ask_duckdb(a, b), made.collect()
        assert rows_of(results) == expected and type(results) is kind
        assert rows_of(made.collect()) == expected, "what can be read once is remembered"
        non_empty.append(bool(expected))

    check()
    assert sum(non_empty) > 0.5 * len(non_empty)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_comes_in_batches_and_by_sql(name: str) -> None:
    give, kind = FORMATS[name]
    assert rows_of(weir.sql(STATEMENT, a=give(A), b=give(B)).collect()) == Counter([(1,)])
    query = weir.join(a=A.schema, b=B.schema, **GOOD).start()
    assert len(query.collect(a=give(A))) == 0
    results = query.collect(b=give(B))
    assert rows_of(results) == Counter([(1,)]) and type(results) is kind
    both = {"a": give(A), "b": give(B)}
    assert weir.join(a=A, b=B, **GOOD).start().process(both).to_pylist() == [{"k": 1}]


@pytest.mark.parametrize(("first", "second"), [("polars", "pandas"), ("dicts", "arrow"), ("lazy", "dicts")])
def test_mixed_formats_give_arrow(first: str, second: str) -> None:
    made = weir.join(a=FORMATS[first][0](A), b=FORMATS[second][0](B), **GOOD)
    assert made.collect() == pa.table({"k": [1]})


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_can_be_chosen(name: str) -> None:
    give = FORMATS[name][0]
    made = weir.join(a=give(A), b=give(B), **GOOD)
    assert made.to_arrow() == pa.table({"k": [1]})
    assert made.to_polars().equals(pl.DataFrame({"k": [1]}))
    pd.testing.assert_frame_equal(made.to_pandas(), pd.DataFrame({"k": [1]}))
    assert made.columns == ["k"]


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_a_package_that_is_missing_is_named(package: str) -> None:
    """In a process of its own, since Arrow remembers that it has found pandas."""
    script = f"""
import sys
class Missing:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] == "{package}":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import pyarrow as pa, weir
t = pa.table({{"ts": pa.array([1], pa.timestamp("s")), "k": [1]}})
weir.join(a=t, b=t, on="a.k = b.k", within="1 s").to_{package}()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.rstrip().endswith(f"pip install {package}, or use to_arrow()")
    assert "weir.errors.QueryError" in done.stderr


class Counted:
    """Rows that count how often they are computed."""

    def __init__(self) -> None:
        self.times = 0

    def compute(self, frame: pl.DataFrame) -> pl.DataFrame:
        self.times += 1
        return frame


def lazy(counted: Counted) -> pl.LazyFrame:
    frame = pl.DataFrame(A)
    return frame.lazy().map_batches(counted.compute, schema=frame.schema)


def test_a_lazy_frame_is_collected_once_and_only_if_its_rows_are_needed() -> None:
    counted = Counted()
    frame = lazy(counted)
    made = weir.join(a=frame, b=frame, **GOOD)
    made.explain()
    made.start().process(a=A, b=B)
    assert (made.columns, counted.times) == (["k"], 0)
    assert len(made.collect()) == len(made.to_pandas()) == 2
    assert counted.times == 1
    by_cost = weir.join(a=lazy(counted), b=B, **GOOD, plan="bjtree")
    assert counted.times == 2, "a plan by cost measures the rows"
    assert by_cost.to_arrow().num_rows == 1
    assert counted.times == 2


def test_a_one_shot_iterator_may_be_two_inputs() -> None:
    rows = iter(A.to_pylist())
    assert len(weir.join(a=rows, b=rows, **GOOD).collect()) == 2
    query, again = weir.join(a=A.schema, b=A.schema, **GOOD).start(), iter(A.to_pylist())
    assert len(query.collect(a=again, b=again)) == 2


def test_a_generator_that_was_read_is_refused() -> None:
    rows = (row for row in A.to_pylist())
    made = weir.join(a=rows, b=B, **GOOD)
    assert "stream 'a' is a generator that was read before, and has no rows left" in refused(a=rows)
    with pytest.raises(QueryError, match="stream 'b' is a generator that was read before"):
        made.start().process(b=rows)


def test_a_batch_that_fails_leaves_the_query_as_it_was() -> None:
    query = weir.join(a=A, b=B, **GOOD).start()
    with pytest.raises(QueryError, match="stream 'b', row 0"):
        query.process(a=A.to_pylist(), b=[5])
    assert query.collect(a=A.to_pylist(), b=B.to_pylist()) == [{"k": 1}]


def fail() -> Iterator[dict[str, Any]]:
    yield {"ts": NOON, "k": 1}
    raise ConnectionError("the source is gone")


@pytest.mark.parametrize(("make", "kind"), [
    (fail, ConnectionError),
    (lambda: pl.DataFrame(A).lazy().select("zz"), pl.exceptions.ColumnNotFoundError),
    (lambda: pl.scan_parquet("no-such-file.parquet"), FileNotFoundError),
])  # fmt: skip
def test_errors_of_others_stay_theirs_and_name_the_stream(make: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        weir.join(a=make(), b=B, **GOOD)
    assert caught.value.__notes__ == ["raised while weir read stream 'a'"]


@pytest.mark.parametrize(("table", "message"), [
    ("orders.parquet", "got str; read a file first, like pyarrow.parquet.read_table(path)"),
    ({"ts": [NOON], "k": [1]}, "got dict; a dict of columns becomes a table by pa.table(...)"),
    (io.StringIO("ts,k"), "stream 'a', row 0: a row is a dict"),
    (csv.DictReader(io.StringIO("ts,k\n2024-01-02,1")), "the time of stream 'a' must be a timestamp"),
    ([A, A.drop_columns("k").append_column("k", A["s"])], "its tables have different columns: Unable to"),
    ([A, {"ts": NOON}], "got dict"),
    (pa.int64(), "stream 'a': this DataType is no schema"),
    (5, "a list of dicts, an iterator of either, or an Arrow schema; got int"),
])  # fmt: skip
def test_what_is_no_table_is_refused(table: Any, message: str) -> None:
    assert message in refused(a=table)


def test_a_list_of_rows_is_no_misspelt_argument() -> None:
    rows = A.to_pylist()
    made = weir.join(times=rows, b=tuple(rows), on="times.k = b.k", within="1 minute", select="b.k")
    assert len(made.collect()) == 2
    assert "no argument 'driver_orders'; did you mean 'driver_order'?" in refused(driver_orders=["a", "b"])


def test_a_schema_of_polars_is_one() -> None:
    made = weir.join(a=pl.DataFrame(A).schema, b=pl.DataFrame(B).schema, **GOOD)
    with pytest.raises(QueryError, match="stream 'a' was given as a schema"):
        made.collect()
    assert made.start().collect(a=pl.DataFrame(A), b=pl.LazyFrame(B.to_pydict())).rows() == [(1,)]


@pytest.mark.parametrize("name", JOIN_HINTS)
def test_names_of_spark_and_polars_say_what_to_write(name: str) -> None:
    made = weir.join(a=A, b=B, **GOOD)
    with pytest.raises(AttributeError) as caught:
        getattr(made, name)
    assert str(caught.value) == f"a join in one process has no '{name}'; {JOIN_HINTS[name]}"


def test_names_that_hints_give_exist() -> None:
    made = weir.join(a=A, b=B, **GOOD)
    query = made.start()
    assert isinstance(made, LocalJoin)
    for name in ("collect", "to_arrow", "to_polars", "to_pandas", "schema", "start"):
        assert hasattr(made, name) and name not in JOIN_HINTS
    for name in ("collect", "process"):
        assert hasattr(query, name) and name not in QUERY_HINTS
    for name in ("stop", "show"):
        with pytest.raises(AttributeError, match=f"a running query in one process has no '{name}'; "):
            getattr(query, name)
    with pytest.raises(AttributeError, match="has no 'to_panda'; did you mean 'to_pandas'"):
        made.to_panda  # noqa: B018 - the look-up fails
    assert not hasattr(made, "_repr_html_")
