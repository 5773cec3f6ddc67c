"""Names that a package offers, each imported when it is first asked for.

Importing a module runs the `__init__` of every package above it, on every Spark worker too, so those must not
import what a worker does not need.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, which imports each name from the module that is given for it.

    >>> lazy_names("weir", {"QueryError": "weir.errors"})("QueryError").__name__
    'QueryError'
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(modules[name])
        # A package may offer one of its own packages, as `weir.plan`.
        value = module if module.__name__ == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get
