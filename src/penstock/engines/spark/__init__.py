"""The engine on Apache Spark; the only part of Penstock that imports pyspark."""
