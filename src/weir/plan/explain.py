"""Explain a join tree as text or as a Mermaid chart, with the cost of each node if that is known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

from weir.plan.cost import NodeCost, PlanCost
from weir.plan.tree import Join, JTree, Leaf

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def render_tree(tree: JTree, cost: PlanCost | None = None) -> str:
    """Render the tree, one node per line, with the probing order of every input.

    >>> from weir.plan.tree import join
    >>> print(render_tree(join(join("a", "b"), "c")))
    join (root)
    ├─ join, probes c
    │  ├─ a, probes b
    │  └─ b, probes a
    └─ c, probes (a b)
    """
    costs = {} if cost is None else {node.node: node for node in cost.nodes}
    if isinstance(tree, Leaf):
        return tree.stream
    root = costs.get(str(tree))
    described = "" if root is None else f": {format_count(root.rate)} results/s, CPU {format_share(root.cpu)}"
    return "\n".join([f"join (root){described}", *_branches(tree, "", costs)])


def _branches(node: Join, indent: str, costs: dict[str, NodeCost]) -> list[str]:
    lines = []
    for i, child in enumerate(node.inputs):
        last = i == len(node.inputs) - 1
        order = ", ".join(str(node.inputs[k]) for k in node.orders[i])
        label = child.stream if isinstance(child, Leaf) else "join"
        described = _describe(costs.get(str(child)))
        lines.append(f"{indent}{'└─' if last else '├─'} {label}, probes {order}{described}")
        if isinstance(child, Join):
            lines += _branches(child, indent + ("   " if last else "│  "), costs)
    return lines


def _describe(cost: NodeCost | None) -> str:
    if cost is None:
        return ""
    state = f"{format_count(cost.rows)} rows ({format_bytes(cost.memory)})"
    return f": {format_count(cost.rate)} rows/s, state {state}, CPU {format_share(cost.cpu)}"


def render_mermaid(tree: JTree, cost: PlanCost | None = None) -> str:
    """Render the tree as a Mermaid flow chart, inputs above the join that reads them.

    >>> from weir.plan.tree import join
    >>> print(render_mermaid(join("a", "b")))
    flowchart TB
      n0["a"] --> n2
      n1["b"] --> n2
      n2(["⋈ (a b)"])
    """
    lines: list[str] = []
    costs = {} if cost is None else {node.node: node for node in cost.nodes}
    _chart_node(tree, lines, count(), costs)
    return "\n".join(["flowchart TB", *(f"  {line}" for line in lines)])


def _chart_node(node: JTree, lines: list[str], numbers: Iterator[int], costs: dict[str, NodeCost]) -> str:
    if isinstance(node, Leaf):
        return f'n{next(numbers)}["{node.stream}{_describe_briefly(costs.get(node.stream))}"]'
    inputs = [_chart_node(child, lines, numbers, costs) for child in node.inputs]
    name = f"n{next(numbers)}"
    lines += [f"{text} --> {name}" for text in inputs]
    lines.append(f'{name}(["⋈ {node}{_describe_briefly(costs.get(str(node)))}"])')
    return name


def _describe_briefly(cost: NodeCost | None) -> str:
    return "" if cost is None else f"<br>{format_count(cost.rate)} rows/s<br>CPU {format_share(cost.cpu)}"


def format_share(seconds: float) -> str:
    """Format CPU seconds per second as a share of one core.

    >>> format_share(0.0123), format_share(1.5), format_share(0.0000123)
    ('1.23%', '150%', '0.00123%')
    """
    return f"{100 * seconds:.3g}%"


def format_bytes(count: float) -> str:
    """Format a number of bytes, to three digits.

    >>> format_bytes(1234), format_bytes(20 << 20), format_bytes(7)
    ('1.21 KiB', '20 MiB', '7 bytes')
    """
    if count < 1:
        return "0 bytes" if count < 0.5 else "1 byte"
    for unit in _UNITS:
        if count < 1000 or unit == _UNITS[-1]:
            break
        count /= 1024
    return "1 byte" if (count, unit) == (1, "bytes") else f"{count:.3g} {unit}"


def format_count(count: float) -> str:
    """Format a count, to three digits at least.

    >>> format_count(1500000.2), format_count(3.14159)
    ('1,500,000', '3.14')
    """
    return f"{count:,.0f}" if count >= 100 else f"{count:.3g}"


def describe_usage(cpu: float, memory: float) -> str:
    """Return both figures, infinite ones as no limit, e.g. "CPU 12%, state 3 MiB"."""
    shown_cpu = "any CPU" if math.isinf(cpu) else f"CPU {format_share(cpu)}"
    shown_memory = "any memory" if math.isinf(memory) else f"state {format_bytes(memory)}"
    return f"{shown_cpu}, {shown_memory}"
