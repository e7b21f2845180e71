SELECT b.auction, b.bidder, b.price, b.channel, b.ts AS bid_ts, a.itemName, a.initialBid, a.reserve,
       a.ts AS auction_ts, a.expires, a.seller, a.category
FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
