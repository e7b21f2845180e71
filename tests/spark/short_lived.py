"""A JVM that lives for seconds, or runs plans once: nothing is compiled twice, and a small heap has one collector."""

from __future__ import annotations

from penstock.engines.spark.session import COLLECTOR, session_settings

JAVA = "spark.driver.extraJavaOptions"
SHORT_LIVED = {JAVA: session_settings()[JAVA].replace(COLLECTOR, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")}
