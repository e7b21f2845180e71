-- q22 Directories of an address
-- asks: bids with the parts of their address.
-- here: the parts of the channel's name, since these events have no address; the expression is of the same kind.
SELECT auction, bidder, price, channel, split_part(channel, '-', 1) AS dir1, split_part(channel, '-', 2) AS dir2,
       split_part(channel, '-', 3) AS dir3
FROM bid
