-- q5 Hot items
-- asks: which auctions had the most bids in the last ten seconds? Asked every two seconds.
-- here: as in Flink's suite: counts joined with the greatest of them. The greatest count of an instant is a window of one
--   tick, so it ends a microsecond after the window of the counts.
WITH counted AS (
    SELECT auction, count(*) AS num
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
), most AS (
    SELECT max(num) AS num FROM (SELECT num, window_end AS ended FROM counted) GROUP BY ended
)
SELECT c.window_start, c.window_end, c.auction, c.num
FROM counted c JOIN most m ON m.window_end = c.window_end + INTERVAL 1 MICROSECOND AND c.num >= m.num
