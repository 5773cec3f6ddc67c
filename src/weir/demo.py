"""Generate the streams of `weir demo`: three stock exchanges whose trades arrive slightly out of order."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from weir.errors import QueryError

EXCHANGES = ("nyc", "tokyo", "london")

TRADES = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("symbol", pa.string()),
        ("price", pa.float64()),
        ("volume", pa.int64()),
    ]
)

COLUMNS = "ts TIMESTAMP, symbol STRING, price DOUBLE, volume BIGINT"  # TRADES as Spark DDL

_SECOND = 1_000_000
_OPENING = 1_704_205_800 * _SECOND  # 2024-01-02 14:30 UTC
_ROWS_PER_SYMBOL = 2  # per second at any rate, so that results grow with the rate and not with its cube
_DISORDER_SECONDS = 2.0
_DELAYED_SHARE = 0.01
_DELAY_SECONDS = (10.0, 40.0)


@dataclass(frozen=True, slots=True)
class Market:
    """The trades of all exchanges; a batch is a pure function of the seed, the exchange and its number.

    >>> market = Market(seed=1, rows_per_second=100)
    >>> market.batch("nyc", 0).num_rows
    100
    >>> market.batch("nyc", 3).equals(market.batch("nyc", 3))
    True
    """

    seed: int = 7
    rows_per_second: int = 200

    def __post_init__(self) -> None:
        if self.rows_per_second < 1:
            raise QueryError(f"a market needs at least one row per second; got {self.rows_per_second}")

    @property
    def symbols(self) -> int:
        """The number of stocks traded."""
        return max(1, self.rows_per_second // _ROWS_PER_SYMBOL)

    def batch(self, exchange: str, number: int) -> pa.Table:
        """Generate one second of arriving trades: up to two seconds old, one in a hundred far older."""
        rng = np.random.default_rng([self.seed, EXCHANGES.index(exchange), number])
        rows = self.rows_per_second
        stock = rng.integers(self.symbols, size=rows)
        delayed = rng.random(rows) < _DELAYED_SHARE
        age = np.where(delayed, rng.uniform(*_DELAY_SECONDS, rows), rng.uniform(0, _DISORDER_SECONDS, rows))
        seconds = number + np.sort(rng.random(rows)) - age
        price = self._fair_price(stock, seconds) * (1 + rng.normal(0, 0.005, rows))
        return pa.table(
            {
                "ts": pa.array((_OPENING + seconds * _SECOND).astype(np.int64)).cast(TRADES.field("ts").type),
                "symbol": self._symbols().take(pa.array(stock)),
                "price": np.round(price, 2),
                "volume": rng.integers(1, 500, rows) * 10,
            },
            schema=TRADES,
        )

    def write(self, folder: Path, batches: int) -> None:
        """Write the first batches as Parquet files, a folder per exchange, with file times in batch order."""
        for exchange in EXCHANGES:
            (folder / exchange).mkdir()
            for number in range(batches):
                file = folder / exchange / f"{number:05}.parquet"
                pq.write_table(self.batch(exchange, number), file)
                os.utime(file, times=(_OPENING // _SECOND + number,) * 2)

    def _fair_price(self, stock: NDArray[np.int64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        rng = np.random.default_rng(self.seed)
        level = np.exp(rng.uniform(np.log(20), np.log(200), self.symbols))
        phase = rng.uniform(0, 2 * np.pi, self.symbols)
        price: NDArray[np.float64] = level[stock] * (1 + 0.02 * np.sin(seconds / 10 + phase[stock]))
        return price

    def _symbols(self) -> pa.Array:
        return pa.array([f"SYM{number:03}" for number in range(self.symbols)])
