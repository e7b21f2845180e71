"""Places to test on: a disk, and an S3 server."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from penstock.storage import lease
from penstock.storage.files import Place, place_of

SETTINGS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """A bucket of an S3 server that runs here; where it is and who asks is in the environment, as usual."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for key, value in {**SETTINGS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
            patch.setenv(key, value)
        patch.setattr(lease, "SETTLE", 0.05)  # this server tells everybody at once
        boto3.client("s3").create_bucket(Bucket="bucket")
        yield "s3a://bucket"
    server.stop()


Places = Callable[[str], Place]


@pytest.fixture(params=["disk", "s3"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Fresh folders of a name, on each kind of storage."""
    if request.param == "disk":
        return lambda name: place_of(tmp_path / name)
    base = f"{request.getfixturevalue('s3')}/{uuid.uuid4().hex}"
    return lambda name: place_of(f"{base}/{name}")
