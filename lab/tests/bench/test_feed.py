from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weir_lab.bench.feed import STREAMS, Feed, hand_over


@pytest.mark.parametrize("rows_per_second", [1, 10, 2_000])
@pytest.mark.parametrize("last", [0, 3, 25])
def test_rows_alive_counts_the_rows_that_the_window_still_holds(rows_per_second: int, last: int) -> None:
    feed, window = Feed(rows_per_second, keys=10), 4
    rows = pa.concat_tables(feed.second("a", second) for second in range(last + 1))
    times = rows["ts"].cast(pa.int64()).to_numpy()
    alive = int((times + window * 1_000_000 > times.max()).sum())
    assert feed.rows_alive(last, window) == len(STREAMS) * alive


def test_the_same_feed_writes_the_same_rows_and_hands_them_over_whole(tmp_path: Path) -> None:
    Feed(20, keys=4).write(tmp_path / "source", range(3))
    hand_over(tmp_path / "source", tmp_path / "lane", [1])
    files = sorted(
        str(file.relative_to(tmp_path / "lane")) for file in (tmp_path / "lane").rglob("*.parquet")
    )
    assert files == [f"{stream}/second-000001.parquet" for stream in STREAMS]
    assert pq.read_table(tmp_path / "lane" / files[1]).equals(Feed(20, keys=4).second("b", 1))


def test_every_key_comes_as_often_as_any_other() -> None:
    keys = Feed(20, keys=4).second("c", 5)["k"]
    assert sorted(pa.array(keys.to_pylist()).value_counts().field("counts").to_pylist()) == [5, 5, 5, 5]
