-- q20 Expand bids with their auctions
-- asks: bids for auctions of one category, with what is known of these.
-- here: with a bound that the original lacks, an hour after the auction opened and a minute before it. On streams of an
--   hour the answer is the original's.
SELECT b.auction, b.bidder, b.price, b.channel, b.ts AS bid_ts, a.itemName, a.initialBid, a.reserve,
       a.ts AS auction_ts, a.expires, a.seller, a.category
FROM bid b JOIN auction a
  ON b.auction = a.id AND b.ts BETWEEN a.ts - INTERVAL 1 MINUTE AND a.ts + INTERVAL 1 HOUR
WHERE a.category = 10
