SELECT auction, bidder, 0.908 * price AS price, ms AS ts, channel FROM bid
