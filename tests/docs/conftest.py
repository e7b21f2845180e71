"""A local Spark for the pages and examples that need one; the session of the process is taken if there is one."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Any:
    from penstock.engines.spark.session import local_session

    return local_session()
