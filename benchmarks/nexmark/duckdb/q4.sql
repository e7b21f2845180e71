SELECT category, avg(final) AS price
FROM (
    SELECT a.ts, a.id, a.category, max(b.price) AS final
    FROM auction a JOIN bid b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires
    GROUP BY a.ts, a.id, a.category
)
GROUP BY category, date_trunc('minute', ts)
