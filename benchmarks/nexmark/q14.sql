-- q14 Calculation
-- asks: bids of some prices, with a few things computed of each.
-- here: the function of the original that counts characters is what replacing them leaves; it reads the channel, since
--   these events have no text that means nothing.
SELECT auction, bidder, 0.908 * price AS price,
       CASE WHEN hour(ts) >= 8 AND hour(ts) <= 18 THEN 'dayTime'
            WHEN hour(ts) <= 6 OR hour(ts) >= 20 THEN 'nightTime'
            ELSE 'otherTime' END AS bidTimeType,
       ts, channel, length(channel) - length(replace(channel, 'c', '')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
