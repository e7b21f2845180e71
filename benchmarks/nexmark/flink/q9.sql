CREATE TEMPORARY VIEW pairs AS
SELECT a.ts, a.id, a.itemName, a.initialBid, a.reserve, a.expires, a.seller, a.category, b.price, b.bidder,
       b.ms AS bid_ts
FROM auction a JOIN bid b
  ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' MINUTE AND b.ms <= a.expires;

SELECT id, itemName, initialBid, reserve, expires, seller, category, price, bidder, bid_ts
FROM (
    SELECT *, ROW_NUMBER() OVER (
        PARTITION BY window_start, window_end, id ORDER BY price DESC, bid_ts, bidder) AS place
    FROM TABLE(TUMBLE(TABLE pairs, DESCRIPTOR(ts), INTERVAL '0.001' SECOND))
)
WHERE place <= 1
