CREATE VIEW person AS SELECT make_timestamp(ts * 1000) AS ts, id, name, email, city, state FROM events WHERE type = 'person';

CREATE VIEW auction AS
SELECT make_timestamp(ts * 1000) AS ts, id, itemName, initialBid, reserve, make_timestamp(expires * 1000) AS expires,
       seller, category
FROM events WHERE type = 'auction';

CREATE VIEW bid AS SELECT make_timestamp(ts * 1000) AS ts, auction, bidder, price, channel FROM events WHERE type = 'bid';
