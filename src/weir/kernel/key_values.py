"""Read the values of a key from stored rows: from the column that holds them, or from their codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weir.expr.evaluate import evaluate
from weir.kernel.keys import Int64s, is_always_exact
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


def decode(codes: Int64s, domain: pa.DataType) -> pa.Array:
    """Return the values whose exact codes these are; of the two zeros of floats, the positive one.

    >>> decode(np.array([125, -7]), pa.decimal128(10, 2)).to_pylist()
    [Decimal('1.25'), Decimal('-0.07')]
    """
    types = pa.types
    if types.is_decimal(domain):
        words = np.stack((codes, codes >> 63), axis=1)
        return pa.Array.from_buffers(domain, len(codes), [None, pa.py_buffer(words.tobytes())])
    if types.is_floating(domain):
        return pa.array(codes.view(np.float64)).cast(domain)
    if types.is_date32(domain):
        return pa.array(codes.astype(np.int32)).view(domain)
    return pa.array(codes).cast(domain)
