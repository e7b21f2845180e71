-- q18 Last bid of a bidder
-- asks: the last bid that each bidder made for each auction.
-- here: of each day, once it is over; the original corrects its answer with every bid. Of bids at one instant the highest.
SELECT auction, bidder, price, channel, ts
FROM (
    SELECT *, ROW_NUMBER() OVER (
        PARTITION BY window_start, window_end, bidder, auction ORDER BY ts DESC, price DESC, channel) AS place
    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' DAY))
)
WHERE place <= 1
