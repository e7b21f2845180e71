-- q19 Highest bids of an auction
-- asks: the ten highest bids for each auction.
-- here: of each day, once it is over; the original corrects its answer with every bid. Of equal bids the earliest are first.
SELECT auction, bidder, price, channel, ts, place
FROM (
    SELECT *, ROW_NUMBER() OVER (
        PARTITION BY window_start, window_end, auction ORDER BY price DESC, ts, bidder, channel) AS place
    FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' DAY))
)
WHERE place <= 10
