"""The engines that run a plan: in-process and on Spark."""
