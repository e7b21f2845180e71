SELECT auction, bidder, price, channel, ms AS ts, place
FROM (
    SELECT *, ROW_NUMBER() OVER (
        PARTITION BY window_start, window_end, auction ORDER BY price DESC, ms, bidder, channel) AS place
    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' DAY))
)
WHERE place <= 10
