-- q17 Auction statistics
-- asks: how many bids each auction had on each day, by ranks of price, and of which prices.
-- here: once a day is over; the original corrects its answer with every bid.
SELECT auction, date_trunc('day', ts) AS day, count(*) AS total_bids,
       count(*) FILTER (WHERE price < 10000) AS rank1_bids,
       count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
       count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
       min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, date_trunc('day', ts)
