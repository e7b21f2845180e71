"""The printed queries of the window-query thesis, replayed by the oracle and in-process."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.errors import StreamError
from penstock.testing.transcripts import Transcript, parse_progress, read_transcript
from tests.transcripts.replay import TRANSCRIPTS, replay

PRINTED = [
    "Q1-1", "Q1-2", "Q2-1", "Q5-1", "Q5-3", "Q6-1", "Q6-2", "Q6-3", "Q6-5", "Q6-6", "Q6-7", "Q6-8", "Q7-2",
    "Q8-1", "Q8-2", "Q8-5",
]  # fmt: skip
JOINS = ["Q5-7", "Q5-8", "Q7-1", "Q8-3", "Q8-4"]


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=str)
def test_transcript(transcript: Transcript) -> None:
    replay(transcript, ["reference", "local"])


@pytest.mark.parametrize("number", PRINTED + JOINS)
def test_every_printed_query_binds(number: str) -> None:
    of_query = [t for t in TRANSCRIPTS if t.paper.startswith(f"{number}:")]
    assert of_query
    for transcript in of_query:
        flow = pk.Flow()
        for stream in transcript.streams:
            flow.stream(
                stream.name, [], time=str(stream.schema.time), progress=stream.progress, schema=stream.schema.ddl
            )
        leading = flow.query(transcript.query).schema.names[:3]
        assert (leading == ("wid", "window_start", "window_end")) == (number not in JOINS)


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        ("ordered()", pk.ordered()),
        ("bounded('5 seconds')", pk.bounded("5 seconds")),
        ("bounded(rows=3)", pk.bounded(rows=3)),
        ("punctuated(\"kind = 'punct'\")", pk.punctuated("kind = 'punct'")),
        ("per_source('r', idle='1 minute', sources=['a'])", pk.per_source("r", idle="1 minute", sources=["a"])),
    ],
)
def test_progress_as_text(text: str, progress: object) -> None:
    assert parse_progress(text) == progress


@pytest.mark.parametrize("text", ["", "soon()", "bounded", "bounded(x)", "ordered(1)", "__import__('os')"])
def test_what_is_not_a_progress(text: str) -> None:
    with pytest.raises(StreamError, match="Not a progress"):
        parse_progress(text)


def test_a_time_without_quotes_is_refused(tmp_path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "paper: x\nquery: SELECT ts FROM m\nstreams: {m: {columns: ts timestamp, time: ts, progress: ordered()}}\n"
        "steps: [{m: [[10:00:05]]}]\nexpect: [{ts: 1}]\n"
    )
    with pytest.raises(StreamError, match="text in quotes"):
        read_transcript(path)
