"""The package's own names: all there, for programs and for type checkers."""

from __future__ import annotations

import ast
from pathlib import Path

import penstock as pk


def test_every_public_name_is_there_and_declared_for_type_checkers() -> None:
    assert all(getattr(pk, name) is not None for name in pk.__all__)
    assert set(pk.__all__) <= set(dir(pk))
    assert not hasattr(pk, "flows")
    tree = ast.parse(Path(str(pk.__file__)).read_text())
    checked = next(n for n in tree.body if isinstance(n, ast.If))
    declared = {a.name: n.module for n in checked.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert declared == pk._WHERE
    assert sorted(declared) == sorted(pk.__all__)
