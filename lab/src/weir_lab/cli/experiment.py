"""What the commands that repeat a paper's experiments have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.table import Table

from weir.errors import QueryError

if TYPE_CHECKING:
    from weir_lab.aim import Aim

R = TypeVar("R")
Tell = Callable[[str], None]


def repeat(run: Callable[[Tell], R], show: Callable[[R, Console], None], out: Path, console: Console) -> None:
    """Run an experiment, told what it is at, and show what it found and where its files are."""
    with console.status("") as status:
        report = run(lambda doing: status.update(doing))
    show(report, console)
    console.print(f"CSV files and pictures: {out}", highlight=False)


def check_ready(out: Path) -> None:
    """Refuse a folder that cannot be written to, before the experiment spends minutes."""
    if out.exists() and not out.is_dir():
        raise QueryError(f"cannot write into '{out}': it is not a folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise QueryError(f"cannot make the folder '{out}': {error.strerror}") from None


def aims_table(aims: Sequence[Aim], title: str = "The paper's headlines and ours") -> Table:
    """The closing table."""
    table = Table(title=title, title_justify="left")
    for heading in ("what", "the paper", "found", "reached", "why, as far as the data tell"):
        table.add_column(heading)
    for aim in aims:
        table.add_row(aim.what, aim.paper, aim.measured, "yes" if aim.reached else "no", aim.why)
    return table
