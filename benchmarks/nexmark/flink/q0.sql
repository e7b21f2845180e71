SELECT auction, bidder, price, ms AS ts, channel FROM bid
