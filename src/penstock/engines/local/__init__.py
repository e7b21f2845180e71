"""The in-process engine: a query graph that hosts the algorithms."""
