-- Bought in New York, sold for more in Tokyo, with London close to Tokyo, all within ten seconds.
--     weir explain examples/stocks.sql
--     weir run examples/stocks.sql --once

CREATE STREAM nyc (ts TIMESTAMP, symbol STRING, price DOUBLE)
    USING csv OPTIONS (path 'examples/trades/nyc') TIMESTAMP BY ts LATENESS 5 SECONDS;

CREATE STREAM tokyo (ts TIMESTAMP, symbol STRING, price DOUBLE)
    USING csv OPTIONS (path 'examples/trades/tokyo') TIMESTAMP BY ts LATENESS 5 SECONDS;

CREATE STREAM london (ts TIMESTAMP, symbol STRING, price DOUBLE)
    USING csv OPTIONS (path 'examples/trades/london') TIMESTAMP BY ts LATENESS 5 SECONDS;

SELECT t.symbol, n.price AS bought, t.price AS sold
FROM nyc n, tokyo t, london l
WHERE n.symbol = t.symbol AND t.symbol = l.symbol
  AND t.price > n.price AND abs(l.price - t.price) <= 0.5
WINDOW 10 SECONDS
INTO parquet 'out/stocks' OPTIONS (checkpointLocation 'out/stocks-state') TRIGGER 1 SECOND;
