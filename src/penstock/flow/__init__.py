"""The public surface: flows, streams, queries and runs."""

from penstock.flow.flow import Flow

__all__ = ["Flow"]
