# SPDX-License-Identifier: BSD-3-Clause
import pytest
from harness.flight import Flight


@pytest.fixture
def keep(closing, tmp_path):
    """keep(app, option...) starts `ringtap flight`."""

    def start(app, *args, folder=None, **kwargs):
        return closing(Flight(app, folder or tmp_path / "incidents", *args, **kwargs))

    return start


@pytest.fixture
def stream_of(fwd):
    """stream_of(rate, option...) starts a stream of numbered packets through a forwarder."""

    def start(rate, *args):
        return fwd(
            "--ring",
            "a",
            "--ring",
            "b",
            "--role",
            "generate:a@0",
            "--role",
            "oneway:a,b@1",
            "--role",
            "sink:b@0",
            "--frame",
            "udp",
            "--rate",
            rate,
            *args,
        ).running()

    return start


@pytest.fixture
def stream(stream_of):
    return stream_of("20k")
