"""What a query is on either engine: its text, its plan, the columns and promises of its result."""

from __future__ import annotations

from penstock.model.changelog import ResultForm
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Node


class Query:
    """A checked query."""

    def __init__(self, name: str, sql: str, plan: Node, catalog: Catalog) -> None:
        """Made by `Flow.query`."""
        self.name, self.sql, self.plan, self.catalog = name, sql, plan, catalog

    @property
    def schema(self) -> Schema:
        """The columns of the result."""
        return self.plan.schema

    @property
    def form(self) -> ResultForm:
        """How the results look in a table: plain rows, rows with their ends, or a changelog."""
        return ResultForm(self.schema, self.properties.insert_only)

    @property
    def properties(self) -> StreamProperties:
        """What is promised of the result."""
        return self.plan.properties
