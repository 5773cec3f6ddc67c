"""Whether batches keep within their budget: CPU as the mean of any ten, memory in each."""

from __future__ import annotations

from collections.abc import Sequence

from weir_lab.regret.record import Record

# Batches that are counted together, and what they may take of the budget.
TOGETHER, MOST = 10, 1.05


def worst_cpu(records: Sequence[Record]) -> float | None:
    """The most CPU that any ten batches in a row took of their budget; None without a budget."""
    bounded = [(record.cpu, record.budget) for record in records if record.budget is not None]
    length = min(TOGETHER, len(bounded))
    if not length:
        return None
    spans = [bounded[i : i + length] for i in range(len(bounded) - length + 1)]
    return max(sum(cpu for cpu, _ in span) / sum(budget for _, budget in span) for span in spans)


def worst_memory(records: Sequence[Record]) -> float | None:
    """The most memory that a batch took of its budget; None without a budget."""
    return max((record.bytes / record.most_bytes for record in records if record.most_bytes), default=None)


def keeps_budget(records: Sequence[Record]) -> bool:
    """True if both are kept."""
    return all(worst is None or worst <= MOST for worst in (worst_cpu(records), worst_memory(records)))
