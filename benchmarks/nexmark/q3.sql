-- q3 Local item suggestion
-- asks: who sells in some states, in one category?
-- here: with a bound that the original lacks. An auction meets a person who registered up to an hour before it, or a
--   minute after it, since events are out of order. On streams of an hour the answer is the original's.
SELECT p.name, p.city, p.state, a.id
FROM auction a JOIN person p
  ON a.seller = p.id AND a.ts BETWEEN p.ts - INTERVAL 1 MINUTE AND p.ts + INTERVAL 1 HOUR
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
