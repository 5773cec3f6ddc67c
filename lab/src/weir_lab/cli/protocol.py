"""`weir-lab protocol`: search the model of the commit protocol, whole and with each safeguard left out."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def protocol(quick: bool, console: Console) -> bool:
    """Show what the searches found; False if the whole protocol fails, or a safeguard is needless."""
    # Not at the top, as in the other commands.
    from weir_lab.protocol.driver import SAFEGUARDS
    from weir_lab.protocol.search import FULL, QUICK, find_fault, find_violation

    are_safe = True
    for size in QUICK if quick else FULL:
        whole = find_violation(size)
        are_safe &= whole.violation is None
        found = whole.violation or "nothing lost, nothing twice"
        console.print(f"{size}: {whole.states:,} states, {found}", highlight=False)
    table = Table(title="What happens without", title_justify="left")
    for heading in ("safeguard", "its purpose", "violation found", "steps to it"):
        table.add_column(heading)
    for safeguard, purpose in SAFEGUARDS.items():
        fault = find_fault(safeguard)
        are_safe &= fault.violation is not None
        table.add_row(safeguard, purpose, fault.violation or "none: it is needless", str(len(fault.trace)))
    console.print(table)
    return are_safe
