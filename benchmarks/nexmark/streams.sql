-- One stream of all events, as the generator sends them, and a view of each kind. A kind's columns are null in the others.
CREATE STREAM events (
    ts bigint, type string, id bigint, name string, email string, city string, state string, itemName string,
    initialBid bigint, reserve bigint, expires bigint, seller bigint, category bigint,
    auction bigint, bidder bigint, price bigint, channel string
) WITH (time = 'ts', time_format = 'epoch_ms', progress = 'bounded 10 seconds');

CREATE VIEW person AS SELECT ts, id, name, email, city, state FROM events WHERE type = 'person';

CREATE VIEW auction AS
SELECT ts, id, itemName, initialBid, reserve, timestamp_millis(expires) AS expires, seller, category
FROM events WHERE type = 'auction';

CREATE VIEW bid AS SELECT ts, auction, bidder, price, channel FROM events WHERE type = 'bid';
