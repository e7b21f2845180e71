"""In-process use, the command line for it and the check of it do without Spark: pyspark is not even imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

USE = """
import sys
import penstock as pk

flow = pk.Flow().stream("s", [{"t": 1, "v": 2}, {"t": 7, "v": 3}], time="t", progress=pk.bounded(2))
flow.stream("r", [{"t": 1, "v": 2}], time="t").merge("m", ["s", "r"])
q = flow.query("SELECT sum(v) AS v [RANGE 4, SLIDE 4, WA t] FROM s")
q.explain(), q.collect(), flow.query("SELECT t, v FROM m").collect()
run = q.start([])
run.wait()
run.progress.json, run.snapshot()
print(sorted(m for m in sys.modules if m.split(".")[0] in ("pyspark", "py4j")))
"""
CHECK = """
import sys
from penstock.cli import main

sys.argv = ["penstock", "check", "SELECT sum(v) AS v [RANGE 4, SLIDE 4, WA t] FROM s", "-s", "s=x.csv", "--time", "t",
            "--evaluator", "local", "--evaluator", "reference"]
try:
    main()
finally:
    print(sorted(m for m in sys.modules if m.split(".")[0] in ("pyspark", "py4j")))
"""


def printed(code: str, folder: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_query_in_process_does_not_import_pyspark(tmp_path: Path) -> None:
    assert printed(USE, tmp_path) == ["[]"]


def test_a_check_without_spark_does_not_import_pyspark(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("t,v\n1,2\n7,3\n")
    *_, agree, imported = printed(CHECK, tmp_path)
    assert (agree, imported) == ("all evaluators agree", "[]")
