"""The SQL dialect, the logical plan, its properties, rewrites, costs and explanation."""
