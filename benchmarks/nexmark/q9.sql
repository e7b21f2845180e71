-- q9 Winning bids
-- asks: the highest bid of each auction, and of several the earliest.
-- here: the original takes the first by ROW_NUMBER, which does not exist here. So max_by looks for the highest price and,
--   of equal ones, the earliest bid: a step of the price counts for more than the minute that an auction may last.
SELECT a.id, a.itemName, a.initialBid, a.reserve, a.expires, a.seller, a.category, max(b.price) AS price,
       max_by(b.bidder, b.price * 100000 - (unix_millis(b.ts) - unix_millis(a.ts))) AS bidder,
       max_by(b.ts, b.price * 100000 - (unix_millis(b.ts) - unix_millis(a.ts))) AS bid_ts
FROM auction a JOIN bid b
  ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE AND b.ts <= a.expires
GROUP BY a.ts, a.id, a.itemName, a.initialBid, a.reserve, a.expires, a.seller, a.category
