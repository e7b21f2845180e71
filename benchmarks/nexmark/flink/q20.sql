SELECT b.auction, b.bidder, b.price, b.channel, b.ms AS bid_ts, a.itemName, a.initialBid, a.reserve,
       a.ms AS auction_ts, a.expires, a.seller, a.category
FROM bid b JOIN auction a
  ON b.auction = a.id AND b.ts BETWEEN a.ts - INTERVAL '1' MINUTE AND a.ts + INTERVAL '1' HOUR
WHERE a.category = 10
