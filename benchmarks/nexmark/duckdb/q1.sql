SELECT auction, bidder, 0.908 * price AS price, ts, channel FROM bid
