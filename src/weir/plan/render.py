"""A join tree as text for people."""

from __future__ import annotations

from weir.plan.tree import Join, JTree, Leaf


def render(tree: JTree) -> str:
    """The tree, one node a line, with the probing order of every input.

    >>> from weir.plan import join
    >>> print(render(join(join("a", "b"), "c")))
    join (root)
    ├─ join, probes c
    │  ├─ a, probes b
    │  └─ b, probes a
    └─ c, probes (a b)
    """
    if isinstance(tree, Leaf):
        return tree.stream
    return "\n".join(["join (root)", *_branches(tree, "")])


def _branches(node: Join, indent: str) -> list[str]:
    lines = []
    for i, child in enumerate(node.inputs):
        last = i == len(node.inputs) - 1
        order = ", ".join(str(node.inputs[k]) for k in node.orders[i])
        label = child.stream if isinstance(child, Leaf) else "join"
        lines.append(f"{indent}{'└─' if last else '├─'} {label}, probes {order}")
        if isinstance(child, Join):
            lines += _branches(child, indent + ("   " if last else "│  "))
    return lines


def mermaid(tree: JTree) -> str:
    """The tree as a Mermaid flow chart, inputs above the join that reads them.

    >>> from weir.plan import join
    >>> print(mermaid(join("a", "b")))
    flowchart TB
      n0["a"] --> n2
      n1["b"] --> n2
      n2(["⋈ (a b)"])
    """
    lines: list[str] = []
    _add(tree, lines, [0])
    return "\n".join(["flowchart TB", *(f"  {line}" for line in lines)])


def _add(node: JTree, lines: list[str], counter: list[int]) -> str:
    if isinstance(node, Leaf):
        return f"{_next(counter)}" + f'["{node.stream}"]'
    inputs = [_add(child, lines, counter) for child in node.inputs]
    me = _next(counter)
    lines += [f"{text} --> {me}" for text in inputs]
    return _closed(me, node, lines)


def _next(counter: list[int]) -> str:
    counter[0] += 1
    return f"n{counter[0] - 1}"


def _closed(me: str, node: Join, lines: list[str]) -> str:
    lines.append(f'{me}(["⋈ {node}"])')
    return me
