SELECT a.id, a.itemName, a.initialBid, a.reserve, a.expires, a.seller, a.category, b.price, b.bidder, b.ts AS bid_ts
FROM auction a JOIN bid b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires
QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ts, b.bidder) = 1
