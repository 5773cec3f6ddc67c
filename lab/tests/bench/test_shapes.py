"""The pure parts of `weir-lab bench shapes`: tables, comparison, exponents and what is left of a batch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weir.errors import QueryError
from weir_lab.bench import spark_shapes
from weir_lab.bench.figure import fit_exponent, from_json, summarise, time_in_turns, to_json
from weir_lab.bench.lanes import Turn
from weir_lab.bench.local_shapes import measure_state
from weir_lab.bench.shape_growth import describe_growth, double
from weir_lab.bench.shape_peer import AIMS, Peer, compare, join_locally
from weir_lab.bench.shape_tables import SHAPES, Shape, make_dense, make_shapes, read_shapes

ROWS = 300
KEYED = make_dense(ROWS)


@pytest.mark.parametrize("shape", make_shapes(ROWS), ids=lambda shape: shape.name)
@pytest.mark.parametrize("batches", [1, 4])
def test_every_shape_gives_duckdbs_results(shape: Shape, batches: int) -> None:
    Peer(shape, threads=1).check("here", join_locally(shape, shape.batches(batches)))


def test_most_small_shapes_have_results() -> None:
    results = [Peer(shape, threads=1).results for shape in make_shapes(ROWS)]
    assert sum(count > 0 for count in results) >= len(SHAPES) - 2


def test_batches_hold_every_row_once_and_in_the_order_of_time() -> None:
    parts = KEYED.batches(7)
    for name, table in KEYED.tables.items():
        assert pa.concat_tables(part[name] for part in parts).equals(table)
    newest = [max(t["ts"][-1].as_py() for t in part.values() if len(t)) for part in parts]
    oldest = [min(t["ts"][0].as_py() for t in part.values() if len(t)) for part in parts]
    assert all(before <= after for before, after in zip(newest, oldest[1:], strict=False))


def test_the_beginning_is_a_part_of_the_rows() -> None:
    assert KEYED.beginning(5).rows == pytest.approx(KEYED.rows / 5, abs=3)


def test_rows_in_the_windows_are_those_a_row_at_the_watermark_may_join() -> None:
    table = pa.table({"ts": pa.array([0, 4_000_000, 5_000_000, 9_000_000]).cast(pa.timestamp("us"))})
    shape = Shape("one", "dense", {"a": table}, None, 5)
    assert shape.count_in_windows([{"a": table}], 10_000_000) == 1
    assert shape.count_in_windows([{"a": table}], 9_999_999) == 2


def test_other_results_are_refused() -> None:
    peer, results = Peer(KEYED, threads=1), join_locally(KEYED, [KEYED.tables])
    with pytest.raises(RuntimeError, match="results, but DuckDB has"):
        peer.check("here", results.slice(1))
    twice = pa.concat_tables([results.slice(0, 1), results.slice(0, results.num_rows - 1)])
    with pytest.raises(RuntimeError, match=r"1 of .* results are not DuckDB's"):
        peer.check("here", twice)


def test_a_short_time_reaches_the_aim_of_sparse_shapes_only() -> None:
    sparse, dense = (Shape("s", kind, {}, None, 1) for kind in ("sparse", "dense"))
    short = compare("local", sparse, [0.4], [0.01], "")
    assert short.is_reached
    assert "under 0.5 s" in short.note
    assert from_json(to_json([short])) == [short]
    assert not compare("local", sparse, [0.6], [0.01], "").is_reached
    assert not compare("local", dense, [0.4], [0.01], "").is_reached


def test_every_kind_has_an_aim() -> None:
    assert {shape.kind for shape in make_shapes(20)} | {"real"} == set(AIMS)


class TestGrowth:
    def test_an_exponent_is_the_slope_between_logarithms(self) -> None:
        assert fit_exponent([1, 2, 4], [3, 6, 12]) == pytest.approx(1)
        assert fit_exponent([10, 20, 40, 80], [5, 5, 5, 5]) == pytest.approx(0)

    def test_only_the_last_four_doublings_count(self) -> None:
        sizes = double(10, 320)
        assert sizes == [10, 20, 40, 80, 160, 320]
        figure = describe_growth("any", {size: [1e9 if size == 10 else size**1.5] for size in sizes})
        assert figure.ratio == pytest.approx(1.5)
        assert not figure.is_reached


class TestTurns:
    def test_the_first_warms_up_unless_patience_ends_with_it(self) -> None:
        values = iter(range(10))
        assert time_in_turns({"a": lambda: next(values)}, 3, patience=60) == {"a": [1, 2, 3]}
        assert time_in_turns({"a": lambda: 7.0}, 3, patience=-1) == {"a": [7.0]}

    def test_one_value_is_its_own_quartiles(self) -> None:
        figure = summarise("any", [2.0], 3.0, "at most")
        assert (figure.low, figure.ratio, figure.high) == (2.0, 2.0, 2.0)


class TestNetSeconds:
    def turns(self, empty: float, full: float, first: float) -> list[Turn]:
        seconds = [empty if is_empty else full for is_empty in spark_shapes._EMPTY]
        seconds[spark_shapes._EMPTY.index(False)] = first
        return [Turn(s, 0, 2, 0, {"spark addBatch": s}) for s in seconds]

    def test_empty_batches_and_the_first_with_rows_do_not_count(self) -> None:
        turns = self.turns(empty=0.2, full=0.3, first=9.0)
        assert spark_shapes.net_seconds(turns) == pytest.approx(20 * 0.1)
        assert len(spark_shapes.with_rows(turns)) == 20

    def test_noise_never_makes_it_negative(self) -> None:
        assert spark_shapes.net_seconds(self.turns(empty=0.3, full=0.2, first=0.2)) > 0


def test_the_state_holds_little_more_than_the_windows() -> None:
    assert 0.9 <= measure_state(make_dense(2_000)).ratio <= 1.2


class TestRealData:
    def test_no_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(QueryError, match="there is no folder"):
            read_shapes(tmp_path / "nowhere")

    def test_a_folder_without_its_files_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(QueryError, match="has no data for any question"):
            read_shapes(tmp_path)

    def test_questions_without_their_files_are_left_out(self, tmp_path: Path) -> None:
        times = pa.array(range(6)).cast(pa.timestamp("us", tz="UTC"))
        motes = pa.table({"ts": times, "moteid": [1, 2, 3] * 2, "temperature": [20.0] * 6})
        pq.write_table(motes, tmp_path / "intel_lab_temp_5d_30s.parquet")
        (shape,) = read_shapes(tmp_path)
        assert shape.name == "real: motes"
        assert join_locally(shape, [shape.tables]).num_rows == 8
