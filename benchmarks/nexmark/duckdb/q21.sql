SELECT auction, bidder, price, channel,
       CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
            WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
            ELSE regexp_extract(channel, '(-|^)([0-9]+)$', 2) END AS channel_id
FROM bid
WHERE regexp_extract(channel, '(-|^)([0-9]+)$', 2) <> '' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
