SELECT auction, bidder, price, channel, ts, place
FROM (SELECT *, row_number() OVER (PARTITION BY date_trunc('day', ts), auction ORDER BY price DESC, ts, bidder, channel) AS place FROM bid)
WHERE place <= 10
