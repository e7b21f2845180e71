"""Replacing a plan while it runs: GenMig in its forms, the strategy that it is measured against, and the split time."""
