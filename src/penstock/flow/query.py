"""What a query is, on either engine: a checked text with its plan, what is promised of its result, and ways to run it.

Nothing runs when a query is made.

What depends on the engine is said where it does: on Spark, late rows and dead letters are DataFrames, and `df` is the
result as one; in-process they are Arrow tables of the last run.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import StreamError
from penstock.flow.drawing import WIDTH, grid, html_text
from penstock.flow.pyspark_names import PySparkNames
from penstock.flow.results import Results
from penstock.flow.run import Run
from penstock.model.changelog import ResultForm
from penstock.model.elements import Element, is_whole
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.plan.catalog import Catalog
from penstock.plan.explain import outline
from penstock.plan.nodes import Node
from penstock.storage.retention import Retention

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StartOptions:
    """How a query is to be run, see `Query.start`."""

    name: str | None
    trigger: Mapping[str, Any] | None
    late: Any
    dead_letters: Any
    buckets: int | None
    retention: Retention | None
    max_dead: float | None
    superseded: Any = None


class Query(PySparkNames, ABC):
    """A checked query."""

    engine: str
    """`in-process`, `Spark batch` or `Spark streaming`."""

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
    def columns(self) -> list[str]:
        """The names of the result's columns."""
        return [f.name for f in self.schema.visible]

    @property
    def properties(self) -> StreamProperties:
        """What is promised of the result."""
        return self.plan.properties

    @property
    def is_streaming(self) -> bool:
        """Whether the query reads streaming DataFrames, so that it can only be started."""
        return False

    @abstractmethod
    def explain(self) -> str:
        """The plan as a tree, with how each operator is run and why."""

    @abstractmethod
    def collect(self, *, max_dead: float | None = None) -> pa.Table:
        """Run bounded inputs to their end and give the whole result.

        With `max_dead`, a number of rows or a fraction of them, more dead letters than that are an error.
        """

    def to_pandas(self) -> pd.DataFrame:
        """The whole result as a pandas frame."""
        frame: pd.DataFrame = self.collect().to_pandas()
        return frame

    def show(self, n: int = 20, truncate: bool | int = True) -> None:
        """Print the first rows of the result as a table.

        Args:
            n: how many rows.
            truncate: whether long values are cut, or at how many characters.
        """
        if not is_whole(n) or n < 0:
            raise StreamError("The number of rows to show is a whole number.", where=self.name, got=repr(n)[:200])
        if not isinstance(truncate, bool) and (not is_whole(truncate) or truncate < 2):
            raise StreamError(
                "truncate is true, false or a number of characters.", where=self.name, got=repr(truncate)[:200]
            )
        width = (WIDTH if truncate else None) if isinstance(truncate, bool) else truncate
        sys.stdout.write(grid(self.collect(), n, width) + "\n")

    @abstractmethod
    def elements(self, *, max_dead: float | None = None) -> Results[Element]:
        """Inserts, adjusts and punctuation as they come, for `for` and `async for`; in-process."""

    @abstractmethod
    def batches(self, *, max_dead: float | None = None) -> Results[pa.Table]:
        """The result as it comes, in Arrow tables, for `for` and `async for`."""

    @property
    @abstractmethod
    def df(self) -> Any:
        """The result as a DataFrame, on Spark; a streaming one is for `writeStream` in append mode."""

    @property
    @abstractmethod
    def late(self) -> Any:
        """The late rows: stream, bound, row as JSON."""

    @property
    @abstractmethod
    def dead_letters(self) -> Any:
        """The unusable rows: stream, the operator that failed on it, reason, row as text."""

    @property
    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Where the rows went: read, on time, late, dead, punctuation, skipped, and failed besides."""

    def start(
        self,
        sink: Any,
        *,
        name: str | None = None,
        trigger: Mapping[str, Any] | None = None,
        late: Any = None,
        dead_letters: Any = None,
        buckets: int | None = None,
        retention: Retention | None = None,
        max_dead: float | None = None,
        superseded: Any = None,
    ) -> Run:
        """Run in the background.

        Args:
            sink: in-process a path to a .parquet, .csv or .jsonl file, a list, a function that is given Arrow tables,
                `pk.kafka_sink(…)`, `pk.redis_sink(…)` or a URI of one of them. On Spark a folder for parquet files, as
                a path or a URI, or a function that is given a DataFrame and a number of the micro-batch, the same
                number if it is called again after a crash.
            name: of the run, the query's unless said otherwise; on Spark it is also that of its checkpoint.
            trigger: on Spark, as for `DataStreamWriter.trigger`, such as `{"availableNow": True}`.
            late: a sink for late rows, which are given to it as they come; on Spark the flow's path keeps them if this
                is None.
            dead_letters: a sink for dead letters, likewise.
            buckets: on Spark, over how many parts the state is spread, as many as Spark has cores unless said
                otherwise; what a query first started with stays.
            retention: on Spark, how long late rows, dead letters and records are kept, and whether small files are
                compacted.
            max_dead: so many dead letters, or such a fraction of the rows, are borne; with more the run fails. On Spark
                those since the query was first started count, and it fails after the micro-batch was kept.
            superseded: on Spark, a folder for the rows that update queues pass over, see `pk.conflate`; they are
                counted anyway, and kept only if this is given.

        Returns:
            The run.
        """
        options = StartOptions(name, trigger, late, dead_letters, buckets, retention, max_dead, superseded)
        return self._start(sink, options)

    @abstractmethod
    def _with_plan(self, plan: Node) -> Query:
        """A query of the same streams with another plan, which reads what this one gives."""

    @abstractmethod
    def _start(self, sink: Any, options: StartOptions) -> Run:
        """Run in the background, with what this engine has of the options."""

    def __repr__(self) -> str:
        return f"<query {self.name}, {self.engine}>\n{self._tree()}"

    def _repr_html_(self) -> str:
        """A query in a notebook."""
        return html_text(f"query {self.name}, {self.engine}", f"{self.sql.strip()}\n\n{self._tree()}")

    def _tree(self) -> str:
        return outline(self.plan)
