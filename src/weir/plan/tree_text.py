"""Read a join tree written as text, the way plans are shown: `((a b) c)`."""

from __future__ import annotations

import re

from weir.errors import QueryError
from weir.plan.tree import Join, JTree, Leaf, join

# A parenthesis, a name in backticks, or a plain one; commas between inputs are optional.
_TOKEN = re.compile(r"\s*,?\s*(?:([()])|`((?:[^`]|``)+)`|([^\s(),`]+))\s*")


def parse_tree(text: str) -> Join:
    """Parse a join tree; every driver probes left to right.

    >>> parse_tree("((orders payments) `my clicks`)") == join(join("orders", "payments"), "my clicks")
    True
    """
    # What is open, outermost first; the first one collects the tree itself.
    open_joins: list[list[JTree]] = [[]]
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise _no_tree(text)
        parenthesis, quoted, plain = token.groups()
        if parenthesis == "(":
            open_joins.append([])
        elif parenthesis == ")":
            inputs = open_joins.pop()
            if not open_joins:
                raise _no_tree(text)
            open_joins[-1].append(join(*inputs))
        else:
            open_joins[-1].append(Leaf(plain or quoted.replace("``", "`")))
        position = token.end()
    if len(open_joins) != 1 or len(open_joins[0]) != 1 or not isinstance(open_joins[0][0], Join):
        raise _no_tree(text)
    return open_joins[0][0]


def _no_tree(text: str) -> QueryError:
    return QueryError(f"the plan '{text.strip()}' is not a join tree, like '((a b) c)'")
