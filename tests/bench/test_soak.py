from __future__ import annotations

from dataclasses import replace

import pytest

from weir.bench.soak import Sample, figures

_STEADY = [Sample(i, 0.5, 10, 100, 6 + i % 4, 30 + i % 4, 150.0, 900.0, 300.0) for i in range(40)]


def test_a_steady_run_reaches_every_aim() -> None:
    assert all(figure.is_reached for figure in figures(_STEADY))


@pytest.mark.parametrize("grown", ["seconds", "slices", "files", "driver_mb", "jvm_mb", "workers_mb"])
def test_whatever_grows_misses_its_aim(grown: str) -> None:
    samples = [replace(s, **{grown: (1 + s.batch / 20) * getattr(s, grown)}) for s in _STEADY]
    assert sum(not figure.is_reached for figure in figures(samples)) == 1
