CREATE TEMPORARY VIEW highest AS
SELECT MAX(price) AS price, window_time AS ended FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end, window_time;

SELECT b.auction, b.price, b.bidder, b.ms AS ts, b.channel
FROM bid b JOIN highest m
  ON b.price = m.price AND b.ts BETWEEN m.ended - INTERVAL '9.999' SECOND AND m.ended + INTERVAL '0.001' SECOND
