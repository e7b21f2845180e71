SELECT b.bidder, b.price, b.channel, p.id AS person_id, p.name, p.email, p.city, p.state, a.itemName, a.initialBid,
       a.reserve, a.ts AS auction_ts, a.expires, a.seller, a.category
FROM bid b JOIN person p ON p.id = b.bidder JOIN auction a ON a.seller = b.bidder
