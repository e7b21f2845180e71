-- q9 Winning bids
-- asks: the highest bid of each auction, and of several the earliest.
-- here: as it stands, of bids in the minute after an auction opened, in which it expires. Rows are numbered among those of
--   one auction, which is complete when the time at which it opened is past.
WITH pairs AS (
    SELECT a.ts AS opened, a.id, a.itemName, a.initialBid, a.reserve, a.expires, a.seller, a.category,
           b.price, b.bidder, b.ts AS bid_ts
    FROM auction a JOIN bid b
      ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE AND b.ts <= a.expires
)
SELECT id, itemName, initialBid, reserve, expires, seller, category, price, bidder, bid_ts
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY opened, id ORDER BY price DESC, bid_ts, bidder) AS place FROM pairs
)
WHERE place <= 1
