"""A streaming query on Spark whose late rows are kept: every row is a result's, late, or a dead letter."""

import json
from pathlib import Path

import penstock as pk
from penstock.engines.spark.session import local_session

FILES = [
    [("10:00:05", "a"), ("10:00:40", "b"), ("10:01:30", "a")],
    [("10:00:50", "b"), ("10:01:10", "a"), ("10:02:45", "b")],  # 10:00:50 is late: 10:01:20 was promised before
    [("10:02:31", "a"), ("never", "a")],  # a row without a readable time
]
incoming = Path("incoming")
incoming.mkdir()
for number, rows in enumerate(FILES):
    lines = [json.dumps({"ts": ts if ts == "never" else f"2026-01-01 {ts}", "host": host}) for ts, host in rows]
    (incoming / f"{number}.jsonl").write_text("\n".join(lines))

spark = local_session()
frame = spark.readStream.schema("ts string, host string").option("maxFilesPerTrigger", 1).json(str(incoming))

flow = pk.Flow(spark, path="flows")  # checkpoints, late rows and dead letters go here
flow.stream("main", frame, time="ts", progress=pk.bounded("10 seconds"))
query = flow.query(
    "SELECT host, count(*) AS n [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM main GROUP BY host", name="hosts"
)

run = query.start("results")
run.finish()  # take what has come, close the stream, stop
print(run.progress)
spark.read.parquet("results").orderBy("wid", "host").show(truncate=False)
spark.read.parquet("flows/hosts/late").show(truncate=False)
spark.read.parquet("flows/hosts/dead").show(truncate=False)
