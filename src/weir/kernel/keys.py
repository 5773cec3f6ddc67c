"""Encode join keys as int64 codes: values that are equal in SQL have equal codes.

Most codes are *exact*: equal codes mean equal values. Integers, dates, timestamps, booleans, floats,
decimals of up to 18 digits and strings of up to seven bytes have exact codes. Longer strings, wide decimals
and null-safe keys are hashed; `is_exact` tells them apart, and a hop verifies their matches on the values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_PACKED_BYTES = 7
_NULL_CODE = np.int64(-0x6B5F_3A21_9E37_79B9)


def is_always_exact(domain: pa.DataType, null_safe: bool) -> bool:
    """True if equal codes of this domain always mean equal values."""
    return not null_safe and not _is_bytes(domain) and not _is_wide_decimal(domain)


def is_exact(codes: Int64s, domain: pa.DataType, null_safe: bool) -> Bools:
    """Tell for each code whether an equal code means an equal value."""
    if is_always_exact(domain, null_safe):
        return np.ones(len(codes), np.bool_)
    if _is_bytes(domain) and not null_safe:
        return codes >= 0
    return np.zeros(len(codes), np.bool_)


def encode(values: pa.Array, domain: pa.DataType, null_safe: bool) -> tuple[Int64s, Bools | None]:
    """Return the codes of `values`, and which of them can match at all (None: all).

    >>> encode(pa.array(["GOOG", "GOOG", None]), pa.string(), False)[1].tolist()
    [True, True, False]
    """
    values = values if values.type == domain else values.cast(domain, safe=False)
    valid = None if values.null_count == 0 else pc.is_valid(values).to_numpy(zero_copy_only=False)
    codes = _codes(values, domain)
    if not null_safe:
        return codes, valid
    codes = mix(codes)
    return (codes if valid is None else np.where(valid, codes, _NULL_CODE)), None


def is_decodable(domain: pa.DataType) -> bool:
    """True if values can be told from their codes; of floats, the sign of zero cannot."""
    types = pa.types
    if types.is_decimal(domain):
        return not _is_wide_decimal(domain)
    kinds = (types.is_int64, types.is_boolean, types.is_date32, types.is_timestamp, types.is_duration)
    return any(is_kind(domain) for is_kind in kinds)


def decode(codes: Int64s, domain: pa.DataType) -> pa.Array:
    """Return the values of exact codes, none of them NULL; of the two zeros of floats, the positive one.

    >>> decode(np.array([125, -7]), pa.decimal128(10, 2)).to_pylist()
    [Decimal('1.25'), Decimal('-0.07')]
    """
    if pa.types.is_decimal(domain):
        words = np.stack((codes, codes >> 63), axis=1)
        return pa.Array.from_buffers(domain, len(codes), [None, pa.py_buffer(words.tobytes())])
    if pa.types.is_floating(domain):
        return pa.array(codes.view(np.float64)).cast(domain)
    values = pa.array(codes)
    return values.cast(pa.int32()).view(domain) if pa.types.is_date32(domain) else values.cast(domain)


def combine(codes: Sequence[Int64s]) -> Int64s:
    """Combine several codes into one; exact for one, hashed for more."""
    first, *rest = codes
    for other in rest:
        first = mix(mix(first) ^ other)
    return first


def mix(codes: Int64s) -> Int64s:
    """Spread the bits of a code over all 64 (the finaliser of splitmix64)."""
    x = codes.astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))).view(np.int64)


def content_hash(columns: Sequence[pa.Array], rows: int) -> Int64s:
    """Hash each row's content, nested values included; the same in every process.

    Unlike keys it distinguishes -0.0 from 0.0. Unions, which Spark does not have, are ignored.

    >>> first, other, again = content_hash([pa.array([{"x": [1, 2]}, {"x": [2, 1]}, {"x": [1, 2]}])], 3)
    >>> bool(first == again), bool(first == other)
    (True, False)
    """
    return combine([np.zeros(rows, np.int64), *map(_content, columns)])


def _content(values: pa.Array) -> Int64s:
    codes = mix(_content_of_valid(values))
    if not values.null_count:
        return codes
    return np.where(pc.is_valid(values).to_numpy(zero_copy_only=False), codes, _NULL_CODE)


def _content_of_valid(values: pa.Array) -> Int64s:
    types, kind = pa.types, values.type
    if types.is_struct(kind):
        return content_hash(values.flatten(), len(values))
    if types.is_map(kind):
        return _content_of_lists(values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))))
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return _content_of_lists(values)
    if types.is_floating(kind):
        numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
        return np.asarray(numbers.view(np.int64))
    if types.is_interval(kind):
        return combine(list(get_decimal_words(values).T))
    if types.is_null(kind) or types.is_union(kind):
        return np.zeros(len(values), np.int64)
    return _codes(values, kind)


def _content_of_lists(values: pa.Array) -> Int64s:
    """Hash lists: the sum of their items, each hashed together with its position."""
    lengths = as_int64(pc.list_value_length(values))
    ends = np.cumsum(lengths)
    position = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
    items = combine([_content(values.flatten()), position])
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(items)))
    return combine([sums[ends] - sums[ends - lengths], lengths])


def _codes(values: pa.Array, domain: pa.DataType) -> Int64s:
    if _is_bytes(domain):
        distinct = values.dictionary_encode()  # keys repeat: hash only the distinct ones
        if not len(distinct.dictionary):
            return np.zeros(len(values), np.int64)
        return _byte_codes(distinct.dictionary)[as_int64(distinct.indices)]
    if pa.types.is_floating(domain):
        return _float_codes(values)
    if pa.types.is_decimal(domain):
        low, high = get_decimal_words(values).T
        return combine([low, high]) if _is_wide_decimal(domain) else low
    return as_int64(values)


def as_int64(values: pa.Array) -> Int64s:
    """Convert integers, booleans, dates, times and durations to int64; nulls become zero."""
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.view(pa.int64())
    if values.null_count:
        values = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
    numbers: Int64s = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers


def _float_codes(values: pa.Array) -> Int64s:
    numbers = np.array(values.fill_null(0.0).to_numpy(zero_copy_only=False), np.float64)
    numbers += 0.0  # -0.0 + 0.0 is 0.0: the two zeros are equal in SQL
    numbers[np.isnan(numbers)] = np.nan  # one bit pattern for every NaN: NaN equals NaN in Spark
    return numbers.view(np.int64)


def get_decimal_words(values: pa.Array) -> Int64s:
    """Return the low and high 64-bit words of decimals without their scale."""
    data = np.frombuffer(values.buffers()[1], dtype=np.int64).reshape(-1, 2)
    words: Int64s = data[values.offset : values.offset + len(values)].copy()
    words[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return words


def _byte_codes(values: pa.Array) -> Int64s:
    _, offset_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[values.offset : values.offset + len(values) + 1]
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    words = _words(data_buffer)
    short = lengths <= _PACKED_BYTES
    packed = _word_at(words, starts, lengths) | (lengths.astype(np.uint64) << np.uint64(56))
    if short.all():
        return packed.view(np.int64)
    hashed = _hash_bytes(words, starts, lengths) | np.int64(-(2**63))
    return np.where(short, packed.view(np.int64), hashed)


def _words(data: pa.Buffer | None) -> npt.NDArray[np.uint64]:
    """Read the little-endian word that starts at each byte of a buffer."""
    padded = (data.to_pybytes() if data is not None else b"") + bytes(8)
    return np.ndarray(shape=(len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))


def _word_at(words: npt.NDArray[np.uint64], starts: Int64s, lengths: Int64s) -> npt.NDArray[np.uint64]:
    """Return up to eight bytes from each start, padded with zeros."""
    full = words[np.minimum(starts, len(words) - 1)]
    bits = np.clip(lengths, 0, 8).astype(np.uint64) * np.uint64(8)
    mask = np.where(
        bits < 64, (np.uint64(1) << np.minimum(bits, np.uint64(63))) - np.uint64(1), ~np.uint64(0)
    )
    return full & mask


def _hash_bytes(words: npt.NDArray[np.uint64], starts: Int64s, lengths: Int64s) -> Int64s:
    codes = mix(lengths)
    active = np.arange(len(starts))
    position = 0
    while True:
        active = active[lengths[active] > position]
        if not len(active):
            return codes
        word = _word_at(words, starts[active] + position, lengths[active] - position)
        codes[active] = combine([codes[active], word.view(np.int64)])
        position += 8


def _is_bytes(domain: pa.DataType) -> bool:
    return bool(pa.types.is_string(domain) or pa.types.is_binary(domain))


def _is_wide_decimal(domain: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(domain)) and domain.precision > 18
