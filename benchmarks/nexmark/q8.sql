-- q8 Monitor new users
-- asks: who registered and opened an auction within the same ten seconds?
-- here: as it stands.
SELECT p.id, p.name, p.window_start
FROM (
    SELECT id, name FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(ts), INTERVAL '10' SECOND))
    GROUP BY id, name, window_start, window_end
) p JOIN (
    SELECT seller FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(ts), INTERVAL '10' SECOND))
    GROUP BY seller, window_start, window_end
) a ON p.id = a.seller AND p.window_end = a.window_end
