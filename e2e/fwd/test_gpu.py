# SPDX-License-Identifier: BSD-3-Clause
"""Packets in memory of a GPU, or shared with one: ringtap-fwd forwards them, and the probe never reads what no CPU can."""

import ctypes
import json

import pytest
from harness.documents import only
from harness.fwd import refused, udp
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.ringtap import LOSS

pytestmark = pytest.mark.nightly  # few machines have a GPU
KINDS = ("gpu", "gpu-managed", "gpu-pinned")
READABLE = KINDS[1:]
POOL = 1023


class Gpu:
    """The first GPU, by its driver."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, device = ctypes.c_void_p(), ctypes.c_int()
        for error in (
            self.cuda.cuInit(0),
            self.cuda.cuDeviceGet(ctypes.byref(device), 0),
            self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
            self.cuda.cuCtxSetCurrent(context),
        ):
            if error:
                raise OSError(f"CUDA error {error}")

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        assert not self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value


@pytest.fixture(scope="module")
def gpu():
    try:
        return Gpu()
    except OSError as e:
        pytest.skip(f"no GPU: {e}")


@pytest.fixture
def echo(gpu, fwd):
    """One that forwards packets of net_null, whose contents are undefined."""

    def start(kind):
        return fwd("--vdev", "net_null0", "--role", "echo:0@1", "--pool-memory", kind, "--pool-size", POOL).running()

    return start


@pytest.mark.parametrize("kind", KINDS)
def test_pool_is_made_filled_forwarded_and_freed(gpu, fwd, kind):
    pool = 65535
    before = gpu.free_bytes()
    app = fwd(
        "--ring",
        "a",
        "--ring",
        "b",
        "--role",
        "generate:a@0",
        "--role",
        "oneway:a,b@0",
        "--role",
        "sink:b@0",
        "--pool-memory",
        kind,
        "--pool-size",
        pool,
        "--frame",
        "udp",
        "--rate",
        "max",
        "--tx-full",
        "retry",
        "--packets",
        200_000,
    )
    report = app.done()
    memory, sink = report["memory"], report.role("sink")
    assert memory["kind"] == kind and memory["buffers"] == pool
    assert memory["bytes"] >= pool * memory["stride_bytes"] and memory["base"] % memory["page_bytes"] == 0
    assert sink["total"]["rx_packets"] == 200_000
    if kind == "gpu":
        assert sink["unstamped"] == 200_000
    else:
        assert sink["unstamped"] == 0 and sink["sequence"]["unique"] == 200_000 and sink["sequence"]["lost"] == 0
    # Other programs may allocate and free some meanwhile.
    until(lambda: gpu.free_bytes() > before - memory["bytes"] // 2, what="its memory being free again")


@pytest.mark.parametrize(
    "how", [(), ("-f", "udp"), ("--fates",), ("-s", "14")], ids=["all", "filtered", "fates", "short"]
)
def test_device_memory_is_never_read(echo, record, how):
    """Reading it would end the application."""
    app = echo("gpu")
    recorder = record(app, "--json", "--fail-on-loss", *how)
    document = json.loads(check([RINGTAP, "top", "--json", "--interval", "0.5s", "--once", app.prefix]))
    assert document["applications"][0]["ports"][0]["rx"]["packets"] > 0
    text = recorder.finish(status=LOSS)
    (counts,) = only(json.loads(text[text.index("{") : text.rindex("}") + 1]))["interfaces"]
    assert counts["captured"] == 0 and counts["lost"]["unreadable"] == counts["lost_total"] == counts["seen"] > 0
    assert app.stop()["ended_by"] == "signal"


@pytest.mark.parametrize(
    "command",
    [
        ("latency", "--json", "--duration", "1s"),
        ("memory", "--json", "--duration", "1s"),
        ("drops", "--json", "--once"),
    ],
    ids=lambda c: c[0],
)
def test_monitors_do_not_read_device_memory(echo, command):
    app = echo("gpu")
    check([RINGTAP, *command, app.prefix])
    assert app.stop()["ended_by"] == "signal"


@pytest.mark.parametrize("how", [(), ("-f", "udp")], ids=["all", "filtered"])
@pytest.mark.parametrize("kind", READABLE)
def test_shared_memory_is_captured(gpu, fwd, record, kind, how):
    app = fwd(
        "--ring",
        "a",
        "--ring",
        "b",
        "--role",
        "generate:a@0",
        "--role",
        "oneway:a,b@0",
        "--role",
        "sink:b@0",
        "--pool-memory",
        kind,
        "--pool-size",
        POOL,
        "--frame",
        "udp",
        "--rate",
        "20k",
    ).running()
    recorder = record(app, "--json", "-c", "2000", "--direction", "rx", *how)
    recorder.done()
    packets = recorder.file().packets
    assert len(packets) == 2000
    numbers = [int.from_bytes(p.data[47:52], "big") for p in packets]
    assert [(p.data[26:38], p.data[42:52]) for p in packets] == [(f[26:38], f[42:52]) for f in map(udp, numbers)]
    # Each packet is received from both rings.
    assert set(numbers) == set(range(min(numbers), max(numbers) + 1))
    assert max(map(numbers.count, set(numbers))) == 2
    assert app.stop().role("sink")["sequence"]["lost"] == 0


@pytest.mark.parametrize(
    "devices,name", [(("--vdev", "net_null0,copy=1"), "net_null0"), (("--vdev", "net_tap0"), "net_tap0")]
)
def test_devices_that_copy_are_refused(gpu, devices, name):
    output = refused("--no-huge", *devices, "--role", "echo:0", "--pool-memory", "gpu")
    assert name in output and "copies" in output
