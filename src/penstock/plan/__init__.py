"""The logical plan: nodes, expressions and functions, and what is derived from them."""
