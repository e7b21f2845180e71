SELECT b.bidder, b.price, b.channel, p.id AS person_id, p.name, p.email, p.city, p.state, a.itemName, a.initialBid,
       a.reserve, a.ms AS auction_ts, a.expires, a.seller, a.category
FROM bid b
JOIN person p ON p.id = b.bidder AND b.ts BETWEEN p.ts - INTERVAL '1' HOUR AND p.ts + INTERVAL '1' HOUR
JOIN auction a ON a.seller = b.bidder AND a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts + INTERVAL '1' HOUR
