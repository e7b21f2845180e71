SELECT DISTINCT p.id, p.name, time_bucket(INTERVAL 10 SECONDS, p.ts) AS window_start
FROM person p JOIN auction a
  ON p.id = a.seller AND time_bucket(INTERVAL 10 SECONDS, p.ts) = time_bucket(INTERVAL 10 SECONDS, a.ts)
