-- q4 Average price for a category
-- asks: what do auctions of a category sell for, on the average?
-- here: of the auctions that opened in the same minute, as in Beam's suite, where it has windows too. In Flink's it is an
--   average since ever, corrected with every bid, which does not exist here. No auction is open for longer than a minute.
WITH sold AS (
    SELECT a.id, a.category, max(b.price) AS final
    FROM auction a JOIN bid b
      ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE AND b.ts <= a.expires
    GROUP BY a.ts, a.id, a.category
)
SELECT category, avg(final) AS price FROM sold [RANGE TUMBLING 1 minute, WA window_end] GROUP BY category
