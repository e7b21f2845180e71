SELECT auction, bidder, price, ts, channel FROM bid
