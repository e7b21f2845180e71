-- q5 Hot items
-- asks: which auctions had the most bids in the last ten seconds? Asked every two seconds.
-- here: as it stands: counts joined with the greatest of them.
WITH counted AS (
    SELECT auction, count(*) AS num
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
), most AS (
    SELECT ended, max(num) AS num FROM (SELECT num, window_end AS ended FROM counted) GROUP BY ended
)
SELECT c.window_start, c.window_end, c.auction, c.num
FROM counted c JOIN most m ON m.ended = c.window_end AND c.num >= m.num
