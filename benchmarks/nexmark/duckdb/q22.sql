SELECT auction, bidder, price, channel, split_part(channel, '-', 1) AS dir1, split_part(channel, '-', 2) AS dir2,
       split_part(channel, '-', 3) AS dir3
FROM bid
