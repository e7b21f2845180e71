WITH highest AS (
    SELECT time_bucket(INTERVAL 10 SECONDS, ts) AS window_start, max(price) AS price FROM bid GROUP BY ALL
)
SELECT b.auction, b.price, b.bidder, b.ts, b.channel
FROM bid b JOIN highest h
  ON b.price = h.price AND b.ts BETWEEN h.window_start AND h.window_start + INTERVAL 10 SECONDS
