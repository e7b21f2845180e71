CREATE TEMPORARY VIEW counted AS
SELECT auction, COUNT(*) AS num, window_start, window_end
FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
GROUP BY auction, window_start, window_end;

SELECT TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', c.window_start) * CAST(1000 AS BIGINT) AS window_start,
       TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', c.window_end) * CAST(1000 AS BIGINT) AS window_end,
       c.auction, c.num
FROM counted c JOIN (
    SELECT MAX(num) AS num, window_start, window_end FROM counted GROUP BY window_start, window_end
) m ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.num
