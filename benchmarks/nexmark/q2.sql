-- q2 Selection
-- asks: bids for some auctions.
-- here: as it stands.
SELECT auction, price FROM bid WHERE auction % 123 = 0
