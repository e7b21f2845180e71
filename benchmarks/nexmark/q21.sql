-- q21 Add a channel's id
-- asks: bids with the number of their channel, which some channels have in their address.
-- here: the number is taken from the channel's name, since these events have no address; the expression is of the same kind.
SELECT auction, bidder, price, channel,
       CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
            WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
            ELSE regexp_extract(channel, '(-|^)([0-9]+)$', 2) END AS channel_id
FROM bid
WHERE regexp_extract(channel, '(-|^)([0-9]+)$', 2) <> '' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
