"""Whether the evaluators of a query agree with the oracle on given input: what `penstock check` shows.

Every evaluator is compared with the oracle over the rows that are on time *for it*, since what is late depends on the
order that an evaluator sees:

- in-process, a row is judged by the rows before it;
- in Spark streaming, by the micro-batches before its own, one batch of the input being one micro-batch;
- in Spark batch, nothing is late: a DataFrame has no order of arrival.

Late rows are compared too, with the bound that condemned them, and the number of dead letters. Which rows are late the
oracle says itself, from the arrivals (`reference.lateness`), and never the engine that it judges.

A row for which an operator finds no value (overflow, division by zero, a user function that raises) is a dead letter of
that operator, and all evaluators must agree on these as well: on the operator, the kind of reason and the row, as far
as its columns came to the operator.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.errors import StreamError, UnsupportedError
from penstock.model.batch import Row
from penstock.model.conform import row_json
from penstock.model.elements import Punctuation, linear
from penstock.model.letters import promise_text
from penstock.model.tdb import TDB, Event
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Source
from penstock.reference.arrivals import Arrivals
from penstock.verify.evaluators import Trial, observable, run_local, run_spark_batch, run_spark_streaming, write_batches
from penstock.verify.verdicts import (
    EVALUATORS,
    Agreement,
    Evaluator,
    Failed,
    Findings,
    Verdict,
    by_known_columns,
    failed,
)

__all__ = ["EVALUATORS", "Agreement", "Evaluator", "agreement"]


def agreement(
    sql: str,
    streams: Sequence[Arrivals],
    catalog: Catalog | None = None,
    evaluators: Collection[Evaluator] = EVALUATORS,
    spark: Any = None,
    merges: Mapping[str, Sequence[str]] | None = None,
) -> Agreement:
    """Run a query with several evaluators over the same arrivals.

    Args:
        sql: The query.
        streams: The streams as they arrive; those that the query does not read are left alone.
        catalog: Where tables, user functions and user aggregates are taken from.
        evaluators: Whom to ask.
        spark: A session, if Spark is asked; a local one is started if there is none.
        merges: Streams that are merged of others, by name.

    Returns:
        What each came to, and how that differs from the oracle.
    """
    unknown = set(evaluators) - set(EVALUATORS)
    if unknown:
        raise StreamError("Not an evaluator.", got=", ".join(sorted(unknown)), hint=f"use {', '.join(EVALUATORS)}")
    if spark is None and any(e.startswith("spark") for e in evaluators):
        from penstock.engines.spark.session import local_session

        spark = local_session()
    trial = Trial.of(sql, streams, catalog or Catalog(), merges)
    with tempfile.TemporaryDirectory(prefix="penstock-check-") as folder:
        if spark is not None:
            write_batches(folder, trial.streams)
        verdicts = [_verdict(trial, e, _runner(trial, e, spark, folder)) for e in EVALUATORS if e in evaluators]
    return Agreement(sql, trial.plan, tuple(verdicts))


# What the oracle says


def _verdict(trial: Trial, evaluator: Evaluator, run: Callable[[], Findings]) -> Verdict:
    got, error = None, ""
    try:
        got = run()
    except UnsupportedError as refusal:
        return Verdict(evaluator, None, None, str(refusal), is_supported=False)
    except Exception as raised:  # whatever a user function or Spark raises is a finding
        error = _summary(raised)
    try:
        expected = _expected(trial, evaluator)
    except Exception as raised:  # as above
        return Verdict(evaluator, got, None, error, oracle_error=_summary(raised))
    if got is not None and evaluator == "spark streaming":
        buried, found = by_known_columns(expected.failed, got.failed)
        got, expected = replace(got, failed=found), replace(expected, failed=buried)
    return Verdict(evaluator, got, expected, error)


def _expected(trial: Trial, evaluator: Evaluator) -> Findings:
    data: dict[str, Sequence[tuple[Row, bool]]] = {}
    late: Counter[Event] = Counter()
    dead = 0
    in_words = any(stream.schema.attributes for stream in trial.streams)
    judged_by_time = {n.name for n in trial.plan.walk() if isinstance(n, Source) and not n.by_arrival}
    for stream in trial.streams:
        dead += stream.untimed
        if evaluator == "spark batch":
            data[stream.name] = [(row, False) for row in stream.data(trial.catalog)]
            dead += stream.refused(trial.catalog)
            continue
        judged = stream.judge("batch" if evaluator == "spark streaming" else "row", trial.catalog)
        dead += judged.dead
        data[stream.name] = judged.data
        if stream.name in judged_by_time:
            late += Counter(late_event(stream, row, bound, in_words) for row, bound in judged.late)
    came = trial.oracle(data)
    on_spark = evaluator in ("spark batch", "spark streaming")
    result = observable(came.result, trial.plan.schema) if on_spark else came.result
    buried: Counter[Failed] = Counter()
    for letter, times in came.dead.items():
        buried[failed(letter.operator, letter.reason, letter.row)] += times
    return Findings(result, TDB(late), dead, buried)


def late_event(stream: Arrivals, row: Row, bound: int | Punctuation, in_words: bool) -> Event:
    """A late row as it is compared; `in_words` where bounds are promises, since several attributes progress."""
    text = row_json(stream.schema, row)
    if not isinstance(bound, Punctuation):
        if not in_words:
            return (stream.name, text), bound, bound + 1
        bound = linear(str(stream.schema.time), bound)
    return (stream.name, text, promise_text(bound, stream.schema)), 0, 1


# What the evaluators say


def _runner(trial: Trial, evaluator: Evaluator, spark: Any, folder: str) -> Callable[[], Findings]:
    match evaluator:
        case "reference":
            return lambda: _expected(trial, "reference")
        case "local":
            return lambda: run_local(trial)
        case "spark batch":
            return lambda: run_spark_batch(trial, spark, folder)
        case "spark streaming":
            return lambda: run_spark_streaming(trial, spark, folder)


def _summary(raised: Exception, lines: int = 4) -> str:
    """What was raised, without the pages of stack that Spark adds."""
    return "\n".join(f"{type(raised).__name__}: {raised}".splitlines()[:lines])
