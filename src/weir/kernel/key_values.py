"""Read the values of a key from stored rows: from the column that holds them, or from their codes."""

from __future__ import annotations

import pyarrow as pa

from weir.expr.evaluate import evaluate
from weir.kernel.keys import decode, is_always_exact
from weir.kernel.slice import Slice
from weir.kernel.state_schema import get_member, key_name
from weir.query.predicate import AttributeClass


def read_key(source: Slice, key: AttributeClass) -> pa.Array:
    """Return the key of every row of a slice, in the type in which it is compared.

    A slice of streams with a member of the class stores its codes while other streams have one too, and
    where codes are hashes, the values.
    """
    if is_always_exact(key.domain, key.null_safe):
        return decode(source.numbers(key_name(key)), key.domain)
    values = evaluate(get_member(key, source.schema.streams), source.fetch, source.rows)
    return values if values.type == key.domain else values.cast(key.domain, safe=False)
