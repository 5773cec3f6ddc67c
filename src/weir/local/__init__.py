"""Run joins in this process."""

from typing import TYPE_CHECKING

from weir.lazy import lazy_names

if TYPE_CHECKING:
    from weir.local.join import LocalJoin
    from weir.local.query import LocalQuery

__all__ = ["LocalJoin", "LocalQuery"]

__getattr__ = lazy_names(__name__, {"LocalJoin": "weir.local.join", "LocalQuery": "weir.local.query"})
