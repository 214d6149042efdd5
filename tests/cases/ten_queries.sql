CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT)
  WITH (source = 'files', path = 'trades/*.parquet', format = 'parquet', time = 'ts', slack = '5 seconds');
CREATE TABLE close (symbol STRING, cp DOUBLE) WITH (path = 'close.csv', format = 'csv');
CREATE QUERY volume_1h AS SELECT symbol, sum(vol) AS vol FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol;
CREATE QUERY volume_12h AS SELECT symbol, sum(vol) AS vol FROM trades [RANGE 12 hours SLIDE 1 minute] GROUP BY symbol;
CREATE QUERY mean_price AS SELECT symbol, avg(price) AS price FROM trades [RANGE 10 minutes SLIDE 1 minute] GROUP BY symbol;
CREATE QUERY trades_a_minute AS SELECT count(*) AS n FROM trades [RANGE 1 minute SLIDE 1 minute] EMIT EMPTY;
CREATE QUERY big AS SELECT sum(price * vol) AS value FROM trades [RANGE 12 minutes SLIDE 5 minutes] WHERE vol > 50000;
CREATE QUERY small AS SELECT sum(price * vol) AS value FROM trades [RANGE 10 minutes SLIDE 3 minutes] WHERE vol < 200;
CREATE QUERY round_lots AS SELECT count(*) AS n FROM trades [RANGE 15 minutes SLIDE 5 minutes] WHERE vol IN (100, 200, 300);
CREATE QUERY cheap_and_big AS SELECT max(vol) AS vol FROM trades [RANGE 9 minutes SLIDE 4 minutes] WHERE vol > 10000 AND price < 5;
CREATE QUERY movers AS
  SELECT count(*) AS n FROM trades T [RANGE 10 minutes SLIDE 5 minutes], close C
  WHERE T.symbol = C.symbol AND abs(T.price - C.cp) / C.cp > 0.05;
CREATE QUERY losers AS
  SELECT count(*) AS n FROM trades T [RANGE 10 minutes SLIDE 5 minutes], close C WHERE T.symbol = C.symbol AND T.price < C.cp;
