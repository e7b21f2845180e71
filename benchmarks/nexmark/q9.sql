-- q9 Winning bids
-- asks: the highest bid of each auction, and of several the earliest.
-- here: the original takes the first by ROW_NUMBER, which does not exist here. So bids are joined with the highest price
--   of their auction, and of those that are left min_by takes the earliest.
WITH pairs AS (
    SELECT a.ts AS opened, a.id, a.itemName, a.initialBid, a.reserve, a.expires, a.seller, a.category,
           b.price, b.bidder, b.ts AS bid_ts
    FROM auction a JOIN bid b
      ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE AND b.ts <= a.expires
), highest AS (
    SELECT opened, id, max(price) AS price FROM pairs GROUP BY opened, id
)
SELECT p.id, p.itemName, p.initialBid, p.reserve, p.expires, p.seller, p.category, p.price,
       min_by(p.bidder, p.bid_ts) AS bidder, min(p.bid_ts) AS bid_ts
FROM pairs p JOIN highest h
  ON p.id = h.id AND p.price = h.price AND p.opened = h.opened
GROUP BY p.opened, p.id, p.itemName, p.initialBid, p.reserve, p.expires, p.seller, p.category, p.price
