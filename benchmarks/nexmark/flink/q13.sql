CREATE TEMPORARY TABLE side_input (
    key BIGINT, `value` STRING, ms BIGINT,
    since AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR since AS since, PRIMARY KEY (key) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = '{side_input}', 'format' = 'csv');

SELECT b.auction, b.bidder, b.price, b.ms AS ts, s.`value`
FROM (SELECT *, MOD(auction, 10000) AS side_key FROM bid) b
JOIN side_input FOR SYSTEM_TIME AS OF b.ts AS s ON b.side_key = s.key
