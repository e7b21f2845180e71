-- q0 Pass through
-- asks: all bids.
-- here: as it stands.
SELECT auction, bidder, price, ts, channel FROM bid
