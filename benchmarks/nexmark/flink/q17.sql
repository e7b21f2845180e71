SELECT auction, TIMESTAMPDIFF(DAY, TIMESTAMP '1970-01-01 00:00:00', window_start) * CAST(86400000 AS BIGINT) AS `day`,
       COUNT(*) AS total_bids,
       COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
       COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
       COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
       min(price) AS min_price, max(price) AS max_price, AVG(CAST(price AS DOUBLE)) AS avg_price, sum(price) AS sum_price
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY auction, window_start, window_end
