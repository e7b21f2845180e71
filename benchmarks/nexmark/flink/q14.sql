SELECT auction, bidder, 0.908 * price AS price,
       CASE WHEN HOUR(ts) >= 8 AND HOUR(ts) <= 18 THEN 'dayTime'
            WHEN HOUR(ts) <= 6 OR HOUR(ts) >= 20 THEN 'nightTime'
            ELSE 'otherTime' END AS bidTimeType,
       ms AS ts, channel, CHAR_LENGTH(channel) - CHAR_LENGTH(REPLACE(channel, 'c', '')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
