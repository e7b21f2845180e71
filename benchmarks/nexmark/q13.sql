-- q13 Bounded side input
-- asks: bids with what a table says of their auction.
-- here: as it stands, with a table of ten thousand rows that is read before. The original looks it up as it is when a bid
--   is processed, which is the same, since it does not change.
CREATE TABLE side_input (key bigint, value string);

SELECT b.auction, b.bidder, b.price, b.ts, s.value
FROM bid b JOIN side_input s ON b.auction % 10000 = s.key
