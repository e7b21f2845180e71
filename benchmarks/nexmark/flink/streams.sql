CREATE TEMPORARY TABLE events (
    ms BIGINT, kind STRING, id BIGINT, name STRING, email STRING, city STRING, state STRING, itemName STRING,
    initialBid BIGINT, reserve BIGINT, expires BIGINT, seller BIGINT, category BIGINT,
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING,
    ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '10.001' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{uri}', 'format' = 'csv', 'csv.null-literal' = '');

CREATE TEMPORARY VIEW person AS SELECT ts, ms, id, name, email, city, state FROM events WHERE kind = 'person';

CREATE TEMPORARY VIEW auction AS
SELECT ts, ms, id, itemName, initialBid, reserve, expires, seller, category FROM events WHERE kind = 'auction';

CREATE TEMPORARY VIEW bid AS SELECT ts, ms, auction, bidder, price, channel FROM events WHERE kind = 'bid';
