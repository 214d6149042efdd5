-- Clicks per user over the last 1, 12 and 24 hours, every minute: three windows, one stream, one job.
-- Run it on the directory it reads:   muntin run examples/last_day_per_user.sql --once --out out/clicks
CREATE STREAM clicks (ts TIMESTAMP, user STRING, page STRING)
  WITH (source = 'files', format = 'json', path = 'examples/clicks', time = 'ts', slack = '30 seconds');

CREATE QUERY clicks_1h AS
  SELECT user, count(*) AS clicks FROM clicks [RANGE 1 hour SLIDE 1 minute] GROUP BY user;
CREATE QUERY clicks_12h AS
  SELECT user, count(*) AS clicks FROM clicks [RANGE 12 hours SLIDE 1 minute] GROUP BY user;
CREATE QUERY clicks_24h AS
  SELECT user, count(*) AS clicks FROM clicks [RANGE 24 hours SLIDE 1 minute] GROUP BY user;
