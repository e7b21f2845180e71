"""A first query in-process: late rows and unreadable rows are kept, and every row is accounted for."""

import penstock as pk

packets = [
    {"ts": "2026-01-01 10:00:05", "srcIP": "10.0.0.1", "len": 100},
    {"ts": "2026-01-01 10:00:20", "srcIP": "10.0.0.2", "len": 300},
    {"ts": "2026-01-01 10:00:12", "srcIP": "10.0.0.1", "len": 50},  # out of order, but in time
    {"ts": "2026-01-01 10:01:10", "srcIP": "10.0.0.1", "len": 700},
    {"ts": "2026-01-01 10:00:30", "srcIP": "10.0.0.2", "len": 10},  # 40 seconds behind: late
    {"ts": None, "srcIP": "10.0.0.2", "len": 10},  # no time: a dead letter
    {"ts": "2026-01-01 10:02:01", "srcIP": "10.0.0.2", "len": 20},
]

flow = pk.Flow()
flow.stream("main", packets, time="ts", progress=pk.bounded("15 seconds"))
query = flow.query(
    "SELECT srcIP, count(*) AS n, sum(len) AS bytes [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM main GROUP BY srcIP"
)

print(query.collect().to_pandas().to_string(index=False))
print("late:", query.late["row"].to_pylist())
print("dead letters:", query.dead_letters["reason"].to_pylist())
print(query.counts)
