CREATE TEMPORARY VIEW pairs AS
SELECT a.ts, a.id, a.category, b.price
FROM auction a JOIN bid b
  ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' MINUTE AND b.ms <= a.expires;

CREATE TEMPORARY VIEW sold AS
SELECT id, category, MAX(price) AS final, window_time AS opened
FROM TABLE(TUMBLE(TABLE pairs, DESCRIPTOR(ts), INTERVAL '0.001' SECOND))
GROUP BY id, category, window_start, window_end, window_time;

SELECT category, AVG(CAST(final AS DOUBLE)) AS price
FROM TABLE(TUMBLE(TABLE sold, DESCRIPTOR(opened), INTERVAL '1' MINUTE))
GROUP BY category, window_start, window_end
