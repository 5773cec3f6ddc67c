"""`weir-lab psp`: the experiments of Wang and Rundensteiner 2009, beside what the paper says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from weir_lab.cli.experiment import aims_table, check_ready, repeat

if TYPE_CHECKING:
    from weir_lab.psp.experiment import Report


def psp(quick: bool, out: Path, console: Console) -> None:
    """Repeat the experiments of Wang and Rundensteiner 2009 into a folder."""
    check_ready(out)
    # Not at the top: an experiment may import what no other command should pay for.
    from weir_lab.psp.experiment import FULL, QUICK, run

    repeat(lambda tell: run(QUICK if quick else FULL, out, tell), show, out, console)


def show(report: Report, console: Console) -> None:
    """Print our measurements beside what the paper says."""
    from weir_lab.psp.settings import MACHINE, RATE, WINDOW

    console.print(
        f"Windows of {WINDOW:g} s, {RATE:g} rows/s a stream, Poisson arrivals, expected counts. The paper "
        f"does not print its costs; here T_j = {1e6 * MACHINE.join:g} µs, T_s = {1e6 * MACHINE.send:g} µs, "
        f"T_n = {1e6 * MACHINE.hop:g} µs, T_i = T_p = {1e6 * MACHINE.insert:g} µs, "
        f"{MACHINE.tuple_bytes:g} bytes a tuple on links of {8e-9 * MACHINE.bandwidth:g} Gbit/s. Rings start "
        f"with full windows and run for {report.size.ring_seconds:g} s, not 600.",
        highlight=False,
    )
    console.print(_rings(report))
    console.print(_lengths(report))
    console.print(aims_table(report.aims, "The paper's statements and ours"))


def _rings(report: Report) -> Table:
    table = Table(title="Figure 8.a: response of a ring [ms]", title_justify="left")
    table.add_column("nodes", justify="right")
    kinds = list(dict.fromkeys((point.selectivity, point.scheme) for point in report.rings))
    for selectivity, scheme in kinds:
        table.add_column(f"{scheme} {selectivity:g}", justify="right")
    by_kind = {(point.nodes, point.selectivity, point.scheme): point for point in report.rings}
    for nodes in report.size.nodes:
        table.add_row(str(nodes), *(f"{1e3 * by_kind[nodes, *kind].response:.2f}" for kind in kinds))
    return table


def _lengths(report: Report) -> Table:
    table = Table(title="Section 5.2: the best ring, nobody waiting", title_justify="left")
    for heading in ("streams", "selectivity", "images", "N1", "N2", "predicted", "found", "slower by"):
        table.add_column(heading, justify="right")
    for length in report.lengths:
        slower = length.response_predicted / length.response_best - 1
        table.add_row(
            str(length.streams),
            f"{length.selectivity:g}",
            length.join,
            f"{length.by_rounds:.1f}",
            f"{length.by_spread:.1f}",
            str(length.predicted),
            str(length.best),
            f"{slower:.1%}",
        )
    return table
