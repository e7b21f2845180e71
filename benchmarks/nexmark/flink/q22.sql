SELECT auction, bidder, price, channel, COALESCE(SPLIT_INDEX(channel, '-', 0), '') AS dir1,
       COALESCE(SPLIT_INDEX(channel, '-', 1), '') AS dir2, COALESCE(SPLIT_INDEX(channel, '-', 2), '') AS dir3
FROM bid
