WITH counted AS (
    SELECT to_timestamp(2 * (epoch_ms(ts) // 2000 + step) - 8)::TIMESTAMP AS window_start, auction, count(*) AS num
    FROM bid, (SELECT unnest(range(5)) AS step) GROUP BY ALL
)
SELECT window_start, window_start + INTERVAL 10 SECONDS AS window_end, auction, num
FROM counted QUALIFY rank() OVER (PARTITION BY window_start ORDER BY num DESC) = 1
