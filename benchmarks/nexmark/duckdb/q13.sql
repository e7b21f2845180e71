SELECT b.auction, b.bidder, b.price, b.ts, s.value FROM bid b JOIN side_input s ON b.auction % 10000 = s.key
