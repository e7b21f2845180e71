"""The same SQL over a bounded DataFrame: Spark runs it natively, as panes and then windows."""

import penstock as pk
from penstock.engines.spark.session import local_session
from penstock.testing.generators import Link, packets

spark = local_session()
spark.createDataFrame(packets({"m": Link(rate=20, disorder=5)}, seconds=300, seed=1, hosts=3)).createOrReplaceTempView(
    "packets"
)

flow = pk.Flow(spark)
flow.stream("main", spark.table("packets"), time="ts")
query = flow.query(
    "SELECT srcIP, count(*) AS n, max(len) AS longest [RANGE 2 minutes, SLIDE 1 minute, WA ts] FROM main GROUP BY srcIP"
)

print(query.explain())
query.df.orderBy("wid", "srcIP").show(6, truncate=False)  # an ordinary DataFrame: join it, write it, cache it
print(query.collect().num_rows, "rows")
