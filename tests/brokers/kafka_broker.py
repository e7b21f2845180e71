"""librdkafka's own broker in a process of its own: prints its address, and ends when its input does.

It speaks Kafka's protocol over the network and keeps topics in memory, four partitions each; it is made by whoever asks
for it first.
"""

import logging
import sys

from confluent_kafka import Producer

if __name__ == "__main__":
    broker = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "logger": logging.getLogger("broker")})
    (address,) = broker.list_topics(timeout=20).brokers.values()
    print(f"{address.host}:{address.port}", flush=True)
    sys.stdin.read()
