SELECT p.name, p.city, p.state, a.id
FROM auction a JOIN person p
  ON a.seller = p.id AND a.ts BETWEEN p.ts - INTERVAL '1' MINUTE AND p.ts + INTERVAL '1' HOUR
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
