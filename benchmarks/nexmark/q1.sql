-- q1 Currency conversion
-- asks: all bids, with the price in euros.
-- here: as it stands; 0.908 is a decimal, and so is the price.
SELECT auction, bidder, 0.908 * price AS price, ts, channel FROM bid
