"""The flow that `test_killed` kills: from a topic to a file, a topic and a Redis stream, with late rows beside them.

`python tests/brokers/killed_flow.py HOME SERVERS TOPIC OUT REDIS END`; REDIS may be empty, and so may END: then it runs
until it is killed.
"""

import sys
from pathlib import Path

import penstock as pk
from penstock.io import kafka_reader

TOTAL = "SELECT k, sum(v) AS total, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s GROUP BY k"
DISORDER = 10


def main(home: Path, servers: str, topic: str, out: str, redis: str, end: str) -> None:
    """Start it with the same words each time."""
    kafka_reader.TOGETHER = 20  # so that it is killed between two of many
    source = pk.kafka(servers, topic, until="end" if end else None)
    flow = pk.Flow().stream("s", source, time="t", schema="t bigint, k bigint, v bigint", progress=pk.bounded(DISORDER))
    queries = {
        flow.query(TOTAL, name="file"): home / "out.jsonl",
        flow.query(TOTAL, name="kafka"): pk.kafka_sink(servers, out),
    }
    if redis:
        queries[flow.query(TOTAL, name="redis")] = pk.redis_sink(redis, out)
    run = flow.start(
        queries,
        late=home / "late.jsonl",
        dead_letters=home / "dead.jsonl",
        snapshots=home / "kept",
        every="200 milliseconds",
    )
    print("running", flush=True)
    run.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
