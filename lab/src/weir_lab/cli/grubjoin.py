"""`weir-lab grubjoin`: the experiments of Gedik et al. 2007, beside what the paper says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from weir_lab.cli.experiment import aims_table, check_ready, repeat

if TYPE_CHECKING:
    from weir_lab.grubjoin.experiment import Report


def grubjoin(quick: bool, out: Path, console: Console) -> None:
    """Repeat the experiments of Gedik et al. 2007 into a folder."""
    check_ready(out)
    # Not at the top: an experiment may import what no other command should pay for.
    from weir_lab.grubjoin.experiment import FULL, QUICK, run

    repeat(lambda tell: run(QUICK if quick else FULL, out, tell), show, out, console)


def show(report: Report, console: Console) -> None:
    """Print how it was done and what was found, beside what the paper says."""
    from weir_lab.grubjoin.decide import SELECTIVITIES
    from weir_lab.grubjoin.output import BUFFER, FITTING, ROOM
    from weir_lab.grubjoin.streams import DEVIATIONS, LAGGED

    bench = report.bench
    thin = f"{bench.thin:g}"
    console.print(
        f"The machine makes {bench.machine.speed:,.0f} comparisons a second: {ROOM:g} times what the full "
        f"join of three aligned streams at {FITTING:g} rows/s takes. One row stands for {thin} of the "
        f"paper's, ε is {thin}, and a buffer of {BUFFER:g} rows holds {bench.machine.buffer:g}; outputs are "
        "told in the paper's rows. Figures 14 and 15 charge decisions: this computer is "
        f"{bench.slowdown:.1f} times as fast as a machine for the paper's rows, so a decision takes so many "
        "times as long there.",
        highlight=False,
    )
    console.print(
        f"Lags τ = {_listed(LAGGED)} s, deviations κ = {_listed(DEVIATIONS)}; streams 4 and 5 are ours. "
        f"Figure 7: selectivities from {SELECTIVITIES[0]:g} to {SELECTIVITIES[1]:g} on a logarithmic scale, "
        "lags normal with any mean that windows allow and a deviation of 5 to 100 % of the window.",
        highlight=False,
    )
    console.print(aims_table([replace(aim, why="") if aim.reached else aim for aim in report.aims]))


def _listed(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)
