SELECT auction, bidder, price, channel, ts
FROM (SELECT *, row_number() OVER (PARTITION BY date_trunc('day', ts), bidder, auction ORDER BY ts DESC, price DESC, channel) AS place FROM bid)
WHERE place <= 1
