SELECT auction, bidder, price, channel, ms AS ts
FROM (
    SELECT *, ROW_NUMBER() OVER (
        PARTITION BY window_start, window_end, bidder, auction ORDER BY ms DESC, price DESC, channel) AS place
    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' DAY))
)
WHERE place <= 1
