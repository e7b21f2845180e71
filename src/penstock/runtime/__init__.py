"""What hosts operators, in-process and inside Spark."""
