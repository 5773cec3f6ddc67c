from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from weir_lab.bench.images import Images, similar
from weir_lab.bench.lanes import Turn
from weir_lab.bench.psp import FULL, ONE, QUICK, SPARK, Measured, figures, summarise


def batch(query: str, seconds: float, rows_per_second: float = 10) -> Measured:
    return Measured(3, 5_000, rows_per_second, query, 0, 300, seconds, seconds - 0.1, 50, 450)


def test_ratios_are_made_of_batches_of_one_setting() -> None:
    ours = [batch(ONE, 9.0), batch("psp", 4.5), batch("share", 6.0), batch("atr", 9.0)]
    pair = [batch("psp", 1.0, 5), batch(SPARK, 12.0, 5)]
    by_name = {figure.name.split(": ")[1]: figure for figure in figures([*ours, *pair])}
    assert {name: figure.ratio for name, figure in by_name.items()} == {
        "one partition / psp": 2.0,
        "one partition / share": 1.5,
        "one partition / atr": 1.0,
        "share / psp": pytest.approx(4 / 3),
        "atr / psp": 2.0,
        "Spark's own / psp": 12.0,
    }
    assert [name for name, figure in by_name.items() if not figure.is_reached] == [
        "one partition / share",
        "one partition / atr",
    ]
    assert "67 rows/s instead of 33" in by_name["one partition / psp"].note


def test_each_query_of_each_setting_has_a_line() -> None:
    rows = summarise([batch(ONE, 9.0), batch(ONE, 7.0), batch("psp", 4.0), batch("psp", 1.0, 5)])
    assert [line[2:5] for line in rows] == [("10", ONE, "2"), ("10", "psp", "1"), ("5", "psp", "1")]
    assert rows[1][5:] == ("75.0", "3.90", "12", "450")


@pytest.mark.parametrize("settings", [FULL, QUICK])
def test_every_setting_compares_something(settings: tuple) -> None:
    assert all("psp" in setting.lanes and len(setting.lanes) > 1 for setting in settings)
    assert {SPARK in setting.lanes for setting in settings} == {True, False}


def test_latency_ends_when_the_results_are_out() -> None:
    turn = Turn(2.0, 10, 5, 20, {"spark addBatch": 1.5, "spark commitOffsets": 0.25, "weir commit": 0.5})
    assert turn.latency == 1.25


def test_images_of_one_scene_are_similar_and_others_are_not() -> None:
    images = Images(rows_per_second=40, pixels=500, seconds_per_file=5)
    first, other = (images.rows(stream, 3) for stream in (0, 1))
    assert images.rows(0, 3).equals(first) and first.num_rows != other.num_rows
    assert first.num_rows == pytest.approx(200, abs=60)
    left, right = (np.repeat(np.arange(40), 40), np.tile(np.arange(40), 40))
    alike = similar(
        first["image"].combine_chunks().take(pa.array(left)),
        other["image"].combine_chunks().take(pa.array(right)),
    ).to_numpy(zero_copy_only=False)
    scenes = alike.reshape(40, 40)
    assert 0.01 < alike.mean() < 0.15
    # Two images similar to one and the same are of one scene, and similar to the same others.
    matched = scenes[scenes.any(axis=1)]
    assert len(np.unique(matched, axis=0)) == len(np.unique(matched.argmax(axis=1)))
