# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap export`: exported values are those of the application, and promtool accepts them."""

import re
import shutil
import signal
import subprocess

import pytest
from harness.paths import RINGTAP
from harness.proc import check, freeze, run, until
from harness.prometheus import OPENMETRICS, Exporter
from harness.ringtap import USAGE


@pytest.fixture
def export(closing):
    return lambda *apps, args=(): closing(Exporter(*apps, args=args))


@pytest.fixture
def forwarding(testpmd):
    pmd = testpmd("net_ring0", "net_ring1")
    pmd.start("start tx_first")
    return pmd


@pytest.mark.smoke
def test_counts_are_those_of_the_application(app, export):
    exporter = export(app, args=("--collectors", "polls,bytes"))
    app.rx(n=100, burst=32, len=60)
    app.rx(n=7, burst=1, len=1000)
    app.tx(n=50, burst=50, len=128)
    rx = {"port": "net_ring_a", "queue": "0", "direction": "rx"}
    tx = {"port": "net_ring_a", "queue": "0", "direction": "tx"}
    assert exporter.value("ringtap_queue_packets_total", **rx) == 107
    assert exporter.value("ringtap_queue_bytes_total", **rx) == 100 * 60 + 7 * 1000
    assert exporter.value("ringtap_queue_packets_total", **tx) == 50
    assert exporter.value("ringtap_queue_bytes_total", **tx) == 50 * 128
    assert exporter.value("ringtap_queue_calls_total", **rx) == 4 + 7
    bursts = {
        le: exporter.value("ringtap_burst_packets_bucket", le=le, **rx)
        for le in ("0.0", "1.0", "2.0", "4.0", "16.0", "32.0", "512.0", "+Inf")
    }
    assert bursts == {"0.0": 0, "1.0": 7, "2.0": 7, "4.0": 8, "16.0": 8, "32.0": 11, "512.0": 11, "+Inf": 11}
    assert exporter.value("ringtap_burst_packets_sum", **rx) == 107
    assert exporter.value("ringtap_burst_packets_count", **rx) == 11
    # The driver's counters are read twice a second.
    received = f'ringtap_port_rx_packets_total{{app="{app.prefix}",port="net_ring_a"}}'
    until(lambda: exporter.series().get(received) == 107)
    assert exporter.value("ringtap_port_tx_packets_total", port="net_ring_a") == 50


def test_promtool_accepts_the_output(forwarding, export):
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed (prometheus)")
    exporter = export(forwarding, args=("--collectors", "all"))
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=exporter.text(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )
    assert done.returncode == 0 and not done.stdout, done.stdout


def test_applications_start_and_end(play, export):
    exporter = export()
    exporter.proc.expect(r"no running DPDK application found")
    exporter.proc.expect(r"nothing to show yet")
    first = play()
    first.ring("a")
    exporter.shows(first)
    second = play()
    exporter.shows(second)
    first.proc.kill()
    until(lambda: exporter.up(first) is None, what="forgotten application")
    assert not any(first.prefix in s for s in exporter.series())
    assert exporter.up(second) == 1


def test_application_that_does_not_answer(play, export):
    """The exporter waits for it, but other applications are exported without delay."""
    frozen = play()
    frozen.ring("a")
    freeze(frozen.proc.pid)
    lively = play()
    lively.ring("b")
    exporter = export(args=(frozen.prefix, f"{lively.prefix}:0", f"{lively.prefix}:9"))
    exporter.proc.expect(rf"export: application '{lively.prefix}' has no port '9'")
    until(lambda: exporter.up(frozen) == 0, what="one that cannot be attached to")
    lively.rx(n=5)
    assert exporter.value("ringtap_queue_packets_total", port="net_ring_b", direction="rx") == 5
    frozen.proc.send_signal(signal.SIGCONT)


def test_ports_and_threads_that_come_back(play, export):
    """One series for each port, whose counters do not decrease; threads that start and end do not leave a series each."""
    app = play()
    exporter = export(app)
    name = 'ringtap_queue_packets_total{{app="{}",port="net_null7",queue="0",direction="rx"}}'.format(app.prefix)
    total = 0
    for _ in range(3):
        port = app.plug("net_null7")
        app.hooked(port)
        app.do(f"poll {port} 0 n=320")
        total += 320
        assert exporter.series()[name] == total
        app.do("unplug net_null7")
    assert exporter.series()[name] == total
    port = app.ring("a", txq=2)
    app.do(f"threads {port} 0 count=8 n=10")
    before = len(exporter.series())
    for _ in range(5):
        app.do(f"threads {port} 1 count=8 n=10")
    app.do(f"threads {port} 0 count=8 n=10")
    after = exporter.series()
    tx = [s for s in after if s.startswith("ringtap_queue_packets_total") and "net_ring_a" in s]
    assert len(tx) <= 3
    assert len(after) < before + 100


def check_counters_do_not_decrease(exporter):
    last = {}
    for _ in range(15):
        now = exporter.series(OPENMETRICS)
        for series, value in last.items():
            if series.split("{")[0].endswith(("_total", "_bucket", "_count", "_sum")):
                assert now[series] >= value, series
        last = now


def test_series_are_the_same_after_a_restart(forwarding, export):
    """The same names and labels, including bounds of histograms."""
    found = []
    for _ in range(2):
        exporter = export(forwarding, args=("--collectors", "all"))
        cpu = f'ringtap_thread_cpu_seconds_total{{app="{forwarding.prefix}",thread="lcore 1"}}'
        latency = {
            f'ringtap_latency_seconds_count{{app="{forwarding.prefix}",rx_port="net_ring{a}",'
            f'tx_port="net_ring{1 - a}"}}'
            for a in (0, 1)
        }
        gap = f'ringtap_thread_max_polling_gap_seconds{{app="{forwarding.prefix}",thread="lcore 1"}}'
        until(lambda: {cpu, gap, *latency} <= set(exporter.series()), what="all series")
        found.append(
            {s for s in exporter.series() if 'thread="lcore 1"' in s or s.startswith("ringtap_latency_seconds_bucket")}
        )
        check_counters_do_not_decrease(exporter)
        exporter.close()
    assert found[0] == found[1]
    pairs = {tuple(re.findall(r'port="net_ring(\d)"', s)) for s in found[0] if "latency" in s}
    assert pairs == {("0", "1"), ("1", "0")}
    bounds = {
        re.search(r'le="([^"]+)"', s).group(1)
        for s in found[0]
        if s.startswith("ringtap_thread_polling_gap_seconds_bucket")
    }
    assert {"1e-07", "3e-06", "10.0", "+Inf"} <= bounds and len(bounds) == 19, bounds


def test_ended_exporter_leaves_no_hooks(app, export):
    for number, status in (signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9):
        exporter = export(app)
        assert app.one("callbacks 0") > 0
        exporter.proc.send_signal(number)
        assert exporter.proc.wait() == status
        until(lambda: app.one("callbacks 0") == 0, what="removed callbacks")
    check([RINGTAP, "export", "--listen", "127.0.0.1:0", "--duration", "100ms", app.prefix])
    until(lambda: app.one("callbacks 0") == 0, what="removed callbacks")


def test_bad_addresses():
    for listen, wrong in ("nowhere.invalid:1", "cannot resolve 'nowhere.invalid'"), ("[::1", "cannot resolve '[:'"):
        done = run([RINGTAP, "export", "--listen", listen])
        assert done.returncode == USAGE, done.stderr
        assert f"--listen {listen}: {wrong}" in done.stderr
        assert done.stderr.endswith("; give PORT, ADDRESS:PORT, [IPV6]:PORT or :PORT\n")


def test_only_this_host_by_default(app, net, closing):
    """At the documented port, which is free in a new network namespace."""
    exporter = closing(net.hub.start([RINGTAP, "export", app.prefix]))
    exporter.expect("^Exporting at http://127.0.0.1:9777/metrics$")
