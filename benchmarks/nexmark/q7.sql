-- q7 Highest bid
-- asks: the highest bids of every ten seconds.
-- here: as it stands, the bound of a window included as in the original.
SELECT b.auction, b.price, b.bidder, b.ts, b.channel
FROM bid b JOIN (
    SELECT max(price) AS price FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))
    GROUP BY window_start, window_end
) m ON b.price = m.price AND b.ts BETWEEN m.window_end - INTERVAL 10 SECONDS AND m.window_end
