"""Merging the output folders of running replicas into one folder, each row once.

The merge reads what the logs of the folders name, pushes rows and frontiers into a logical merge, and commits in
rounds: one record has the rows that came out, the state of the merge, and the position in every folder. So a merge that
is killed at any moment goes on exactly where its last record is, whatever the replicas have done since.

A row comes out when the frontier that is followed has passed it (`half frozen`), so nothing is ever taken back. What a
replica that is behind still has to say of the past is not read: micro-batches all of whose rows start before what the
output has reached. That is judged by their greatest start; a query that passes rows through writes rows that lie above
its frontier.

A folder that was wiped and written anew is an input that begins again. Folders may be added and left out between two
starts. What a replica contradicts itself in, and where it differs from the output, is put aside with the reason, in
`dead` beside the checkpoint. All of this runs in this process: it takes no Spark, and a round takes milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, astuple
from typing import Any

import pyarrow as pa

from penstock.errors import CheckpointError, MergeError, SourceError
from penstock.flow.merged_stream import MergedStream
from penstock.flow.replica_folders import DAMAGED, REFUSED, ReplicaFolder
from penstock.model.batch import Batch
from penstock.model.conform import row_json
from penstock.model.elements import Element, Insert, Punctuation, linear
from penstock.model.properties import StreamProperties
from penstock.model.schema import STRING, Field, Schema
from penstock.model.time import END_OF_TIME, MIN_TICK, show_ticks
from penstock.model.values import canonical_row
from penstock.storage.files import place_of
from penstock.storage.folders import OutputFolder, OutputStream, Owner, describe
from penstock.storage.home import Home, open_home
from penstock.storage.reader import Position
from penstock.storage.retention import Retention
from penstock.storage.run_log import RunLog

ASIDE = Schema((Field("stream", STRING), Field("reason", STRING), Field("row", STRING)))
"""The columns of what is put aside."""
DRIVERS = ("leading", "majority")
PATIENCE = 5_000
"""How many rows the alarm keeps for a replica that is behind, or not there: they are in every record's state."""


class FolderMerge:
    """A merge of output folders that this process runs; `step` until it has ended."""

    def __init__(
        self,
        folders: Sequence[str],
        into: str,
        path: str,
        *,
        key: Sequence[str] | None = None,
        driver: str = "leading",
        retention: Retention | None = None,
    ) -> None:
        """Hold the place; what the replicas are is seen when the first of them is there."""
        self.replicas = _replicas(folders)
        begun = (place_of(path) / "merge.json").exists()
        self.driver = _driver(driver, dict(zip(folders, self.replicas, strict=True)), begun=begun)
        self.into, self.key, self.retention = place_of(into), key, retention or Retention()
        self.home: Home = open_home(place_of(path), keep=self.retention.records)
        self.home.lease.keep()
        self.stream: OutputStream | None = None
        self.log: RunLog | None = None
        self.merge: MergedStream | None = None
        self._begun_by = self.driver
        """The driver with which the merge was begun."""
        self._said: list[Element] = []
        """What the output says because replicas were added or left out."""
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    # Running

    def step(self) -> bool:
        """Take what has come and commit it; whether there was something."""
        if self.merge is None and not self._open():
            return False
        assert self.merge is not None
        out, self._said = self._said, []
        counts: Counter[str] = Counter()
        taken = bool(out)
        try:
            for replica in self.replicas:
                taken = self._take(replica, out, counts) or taken
            if taken:
                self._commit(out, counts)
        except BaseException:
            # What was taken is in no record: the next step begins where the last record is.
            self.merge = self.log = None
            self._said = []
            for replica in self.replicas:
                replica.begin_again()
            raise
        return taken

    def _take(self, replica: ReplicaFolder, out: list[Element], counts: Counter[str]) -> bool:
        """Everything that one replica brings."""
        merge, stream = self.merge, self.stream
        assert merge is not None
        assert stream is not None
        found = replica.poll(stream)
        if found is None:
            return False
        if found.restarted:
            counts["restarts"] += 1
            out += merge.restart(replica.name)
        taken = found.restarted
        before = replica.skipped
        # A row lives for a tick; one that ends where the output stands is still compared.
        for portion, table in replica.tables(found.portions, merge.stable - 1):
            taken = True
            if table is not None:
                counts["read"] += table.num_rows
                schema = stream.schema
                index = schema.time_index
                for row in Batch(schema, table=table).rows:
                    vs = row[index]
                    assert isinstance(vs, int)
                    out += merge.merge.push(replica.name, Insert(canonical_row(row), vs, vs + 1))
            elif portion.rows:
                merge.merge.excuse(replica.name)
            if portion.frontier is not None:
                out += merge.merge.push(replica.name, linear(str(stream.time), portion.frontier))
        counts["skipped"] += replica.skipped - before
        return taken

    def _commit(self, out: Sequence[Element], counts: Counter[str]) -> None:
        log, merge, stream = self.log, self.merge, self.stream
        assert log is not None
        assert merge is not None
        assert stream is not None
        rows = [e.payload for e in out if isinstance(e, Insert)]
        aside = self._aside()
        counts["written"] += len(rows)
        counts["aside"] += aside.num_rows
        staged = {}
        if rows:
            staged["results"] = [log.folders["results"].staging.write([Batch(stream.schema, rows).table])]
        if aside.num_rows:
            staged["dead"] = [log.folders["dead"].staging.write([aside])]
        number = log.next_number
        state = self.home.place / "state" / f"{number:012d}"
        state.write(merge.snapshot())
        positions = {r.name: list(astuple(r.position)) for r in self.replicas if r.position is not None}
        log.commit(
            number,
            staged,
            frontier=merge.stable if merge.stable > MIN_TICK else None,
            counts=counts,
            positions=positions,
            state={
                "merge": state.name,
                "driver": self.driver,
                "inputs": {r.name: [r.rows, r.skipped, r.restarts] for r in self.replicas},
            },
        )
        for name in state.folder.files():
            if name < state.name:
                (state.folder / name).delete()

    def _aside(self) -> pa.Table:
        """What replicas contradicted themselves in, and where they differ, since the last round."""
        assert self.merge is not None
        assert self.stream is not None
        inner: Any = self.merge.merge
        schema = self.stream.schema
        told: list[tuple[str, str, str]] = []
        for misstep in inner.missteps:
            element = misstep.element
            row = str(element) if isinstance(element, Punctuation) else row_json(schema, element.payload)
            told.append((misstep.input, misstep.reason, row))
        inner.missteps = []
        watch = getattr(inner, "watch", None)
        if watch is not None and watch.found:
            told += [(d.input, f"diverged: {d}", row_json(schema, d.payload)) for d in watch.found]
            watch.found = []
        return Batch(ASIDE, told).table

    # Opening

    def _open(self) -> bool:
        """Open the merge where its last record is, or begin it when the first replica is there; whether it is open."""
        stream = self._known_stream()
        if stream is None:
            return False
        owner = Owner(self.home.run, str(self.home.place), "a merge", "results")
        results = OutputFolder(self.into, owner, stream, compact=self.retention.compact)
        aside = OutputFolder(
            self.home.place / "dead",
            Owner(self.home.run, str(self.home.place), "a merge", "dead"),
            describe(ASIDE),
            keep=self.retention.seconds("dead_letters"),
        )
        for folder in (results, aside):
            folder.claim()
        self.stream, self.log = stream, RunLog(self.home, {"results": results, "dead": aside})
        self.log.repair()
        self.merge = self._restored(stream)
        return True

    def _known_stream(self) -> OutputStream | None:
        """What is merged: as it was when the merge began, or as the first replica that is there tells."""
        file = self.home.place / "merge.json"
        if not file.exists():
            found = next((s for r in self.replicas if (s := r.describe()) is not None), None)
            if found is None:
                return None
            if found.time is None:
                raise SourceError(
                    "The rows of this folder do not show their time, so they cannot be merged.",
                    got=f"{self.replicas[0].place}: {found.ddl}",
                    hint="put the time column into the select list",
                )
            found = OutputStream(found.columns, found.time, tuple(self.key) if self.key else found.key)
            _check_key(found)
            file.put_json({**asdict(found), "driver": self.driver})
        saved = file.read_json()
        try:
            key = None if saved["key"] is None else tuple(saved["key"])
            stream = OutputStream(tuple((n, t) for n, t in saved["columns"]), saved["time"], key)
            self._begun_by = saved["driver"]
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                "A file is damaged.", where=str(file), got=repr(error), hint="restore it from a copy"
            ) from error
        if self.key is not None and sorted(self.key) != sorted(stream.key or ()):
            raise CheckpointError(
                "The merge was begun otherwise.",
                where=str(self.home.place),
                got=f"key {', '.join(self.key)}",
                hint=f"key {', '.join(stream.key or ()) or 'none'}; or another --path and --into",
            )
        return stream

    def _fresh(self, stream: OutputStream, names: Iterable[str], driver: str) -> MergedStream:
        key = None if stream.key is None else frozenset(stream.key)
        return MergedStream(
            {name: [] for name in names},
            properties=StreamProperties(key=key),
            algorithm="R3" if key is not None else "R4",
            policy="half frozen",
            driver=driver,
            away={driver, self.driver} - set(DRIVERS),
            patience=PATIENCE,
            limit=None,
            columns=[name for name, _ in stream.columns],
        )

    def _restored(self, stream: OutputStream) -> MergedStream:
        """The merge as the last record left it, with the replicas and the driver that there are now."""
        assert self.log is not None
        last = self.log.last()
        known = {r.name: r for r in self.replicas}
        state = {} if last is None else last.state
        followed = state.get("driver", self._begun_by)
        if self.driver not in {*DRIVERS, *known, *state.get("inputs", ()), followed}:
            raise _no_driver(self.driver)
        if last is None:
            return self._fresh(stream, known, self.driver)
        merge = self._fresh(stream, last.state["inputs"], followed)
        merge.restore((self.home.place / "state" / last.state["merge"]).read())
        for name in known:
            if name not in merge.merge.inputs:
                self._said += merge.attach(name)
        for name in list(merge.merge.inputs):
            if name not in known:
                self._said += merge.detach(name)
        if getattr(merge.merge, "driver", self.driver) != self.driver:
            self._said += merge.follow(self.driver)
        for name, position in last.positions.items():
            if name in known:
                known[name].position = Position(*position)
        for name, (rows, skipped, restarts) in last.state["inputs"].items():
            if name in known:
                known[name].rows, known[name].skipped, known[name].restarts = rows, skipped, restarts
        return merge

    # What is known

    @property
    def progress(self) -> dict[str, Any]:
        """Rows read, skipped, written and put aside so far, rounds done, and how far the output has come."""
        last = self.log.last() if self.log is not None else None
        totals = {"read": 0, "written": 0, "skipped": 0, "aside": 0, "restarts": 0, **(last.totals if last else {})}
        frontier = last.frontier if last is not None else None
        domain = self.stream.schema.domain if self.stream is not None else Schema(()).domain
        return {
            **totals,
            "batches": 0 if last is None else last.number + 1,
            "bound": None if frontier is None else show_ticks(frontier, domain),
            "frontier": frontier,
            "ended": frontier == END_OF_TIME,
            "replicas": {str(r.place): r.state for r in self.replicas},
        }

    @property
    def ended(self) -> bool:
        """Whether the output has come to its end."""
        return bool(self.progress["ended"])

    @property
    def unreadable(self) -> list[ReplicaFolder]:
        """Replicas that are there and cannot be read."""
        return [r for r in self.replicas if r.state in (DAMAGED, REFUSED)]

    def status(self) -> list[str]:
        """How each replica is."""
        return [str(r) for r in self.replicas]

    def run(self, pause: Callable[[], bool]) -> None:
        """Merge until the output has ended; `pause` is called when there is nothing, and says whether to go on."""
        while not self.ended:
            if not self.step() and not pause():
                return

    def take_all(self) -> None:
        """Merge what is there."""
        while self.step():
            pass
        if self.merge is None:
            raise SourceError(
                "None of these is the output folder of a query.",
                got=", ".join(str(r.place) for r in self.replicas),
                hint="start the queries with q.start(folder); without --once they are waited for",
            )

    def close(self) -> None:
        """Give the place back; the same folders and path go on from here."""
        self.home.lease.release()


def _replicas(folders: Sequence[str]) -> list[ReplicaFolder]:
    if len(folders) < 2:
        raise MergeError("A merge of outputs needs at least two folders.", got=", ".join(folders) or "none")
    found = [ReplicaFolder(place_of(f)) for f in folders]
    double = [n for n, count in Counter(r.name for r in found).items() if count > 1]
    if double:
        raise MergeError("A folder is given twice.", got=double[0], hint="give each replica once")
    return found


def _driver(driver: str, replicas: dict[str, ReplicaFolder], *, begun: bool) -> str:
    """The driver's name; one that is left out must have been there before, so the merge has begun."""
    if driver in DRIVERS:
        return driver
    if driver in replicas:
        return replicas[driver].name
    name = place_of(driver).uri
    if not begun and all(r.name != name for r in replicas.values()):
        raise _no_driver(driver)
    return name


def _no_driver(driver: str) -> MergeError:
    return MergeError("There is no such driver.", got=driver, hint=f"{', '.join(DRIVERS)}, or one of the folders")


def _check_key(stream: OutputStream) -> None:
    missing = [k for k in stream.key or () if k not in dict(stream.columns)]
    if missing:
        raise MergeError("The key names an unknown column.", got=missing[0], hint=f"the columns are {stream.ddl}")


def merge_outputs(folders: Sequence[str], into: str, path: str, **options: Any) -> FolderMerge:
    """Merge what replicas of a query write, as long as they write it.

    Args:
        folders: the folders to which the replicas were started, `q.start(folder)`; they need not be there yet.
        into: the folder for the merged rows, each once.
        path: where the merge keeps its state; with the same path it goes on where it stopped.
        options: `key`, columns that, with the time, tell rows of a replica apart, where the replicas do not say;
            `driver`, whose bounds are followed: `leading`, `majority`, or a folder; `retention`.

    Returns:
        The merge, to be run.
    """
    return FolderMerge(folders, into, path, **options)
