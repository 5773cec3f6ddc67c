"""`weir-lab fuzz` and `weir-lab functions`: what weir makes of whatever it is given."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from weir_lab.cli.bench import check_writable

if TYPE_CHECKING:
    from weir_lab.fuzz.experiment import Finding

_SHOWN = 20


def fuzz(
    quick: bool, seed: int, count: int | None, only: str | None, json_file: Path | None, console: Console
) -> bool:
    """Fuzz, show what differs, and write it to a file if one is named; False if an aim is missed."""
    check_writable(json_file)
    # Not at the top: Spark takes a while to import.
    from weir_lab.fuzz.experiment import choose_sizes, run

    sizes = choose_sizes(quick, count, only)
    with console.status("") as status:
        findings = run(sizes, seed, lambda doing: status.update(doing))
    _show(findings, console)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(finding) for finding in findings], indent=2) + "\n")
    return all(finding.aim.reached for finding in findings)


def functions(out: Path) -> None:
    """Survey Spark's functions, and write the page about them."""
    check_writable(out)
    from weir_lab.fuzz.functions import survey, to_markdown
    from weir_lab.spark_session import local_session

    spark = local_session("weir-lab functions", 1, {})
    out.write_text(to_markdown(survey(spark)))
    spark.stop()


def _show(findings: list[Finding], console: Console) -> None:
    from weir_lab.fuzz.experiment import summarise_refusals

    for finding in findings:
        for difference in finding.differences[:_SHOWN]:
            console.print(difference, markup=False, highlight=False, soft_wrap=True)
    reasons = Table(title="Why weir refused what was drawn", title_justify="left")
    for heading in ("times", "reason"):
        reasons.add_column(heading)
    for reason, times in summarise_refusals(findings):
        reasons.add_row(str(times), reason)
    aims = Table(title="What had to hold", title_justify="left")
    for heading in ("what", "wanted", "found", "reached"):
        aims.add_column(heading)
    for finding in findings:
        aim = finding.aim
        aims.add_row(aim.what, aim.paper, aim.measured, "yes" if aim.reached else "no")
    console.print(reasons)
    console.print(aims)
