# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap export`: exported values are those of the application, and Prometheus accepts them."""
import re
import shutil
import signal
import subprocess

import pytest

from harness import prometheus
from harness.paths import RINGTAP
from harness.prometheus import OPENMETRICS, Exporter, Prometheus, get, parse
from harness.proc import freeze, run, until
from harness.ringtap import FAILED, USAGE


@pytest.fixture
def export(closing):
    return lambda *apps, args=(): closing(Exporter(*apps, args=args))


@pytest.fixture
def prom(closing, tmp_path):
    reason = prometheus.missing()
    if reason:
        pytest.skip(reason)
    # A scrape that takes longer than this makes the series stale.
    return lambda exporter: closing(Prometheus(tmp_path, exporter.address, interval="2s"))


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
    bursts = {le: exporter.value("ringtap_burst_packets_bucket", le=le, **rx)
              for le in ("0.0", "1.0", "2.0", "4.0", "16.0", "32.0", "512.0", "+Inf")}
    assert bursts == {"0.0": 0, "1.0": 7, "2.0": 7, "4.0": 8, "16.0": 8, "32.0": 11,
                      "512.0": 11, "+Inf": 11}
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
    done = subprocess.run(["promtool", "check", "metrics"], input=exporter.text(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 0 and not done.stdout, done.stdout


def test_two_formats_of_the_same_series(app, export):
    exporter = export(app)
    app.rx(n=3)
    # A thread's counters of the kernel are the only series that come later than the others.
    cpu = f'ringtap_thread_cpu_seconds_total{{app="{app.prefix}",thread="lcore 0"}}'
    until(lambda: cpu in exporter.series(), what="the kernel's counters")
    plain = get(exporter.url)
    assert plain[1] == "text/plain; version=0.0.4; charset=utf-8"
    assert "# TYPE ringtap_queue_packets_total counter" in plain[2]
    for accept in (OPENMETRICS, "application/openmetrics-text"):
        metrics = get(exporter.url, accept)
        assert metrics[1].startswith("application/openmetrics-text; version=1.0.0")
        assert metrics[2].endswith("\n# EOF\n")
        assert "# TYPE ringtap_queue_packets counter" in metrics[2]
        assert set(parse(metrics[2])) == set(parse(plain[2]))
    for accept in ("text/plain", "*/*", "text/plain;q=0.9,application/openmetrics-text;q=0.1",
                   "application/openmetrics-text;q=0"):
        assert get(exporter.url, accept)[1].startswith("text/plain")
    for text in (plain[2], metrics[2]):
        families = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
        assert len(families) == len(set(families))
        assert re.findall(r"^# HELP (\S+)", text, re.MULTILINE) == families


def test_prometheus_scrapes_it(app, export, prom):
    exporter = export(app)
    app.rx(n=100, burst=32, len=60)
    app.tx(n=50, burst=50)
    server = prom(exporter)
    packets = 'ringtap_queue_packets_total{direction="rx"}'
    (labels, value), = until(lambda: server.query(packets), 30, "first scrape")
    assert value == 100
    assert labels["app"] == app.prefix and labels["port"] == "net_ring_a"
    bucket = 'ringtap_burst_packets_bucket{direction="rx",le="16.0"}'
    (_, value), = until(lambda: server.query(bucket), 30, "a bucket")
    assert value == 1
    app.rx(n=1000, burst=10)
    until(lambda: [v for _, v in server.query(packets)] == [1100], 30, "second scrape")

    def healthy():
        target, = server.targets()
        return target["health"] == "up" and not target["lastError"]

    until(healthy, 30, "a scrape in time")


def test_applications_start_and_end(play, export):
    exporter = export()
    first = play()
    first.ring("a")
    exporter.shows(first)
    second = play()
    exporter.shows(second)
    first.proc.kill()
    until(lambda: exporter.up(first) is None, 20, "forgotten application")
    assert not any(first.prefix in s for s in exporter.series())
    assert exporter.up(second) == 1


def test_application_that_does_not_answer(play, export):
    """The exporter waits for it, but other applications are exported without delay."""
    frozen = play()
    frozen.ring("a")
    freeze(frozen.proc.pid)
    lively = play()
    lively.ring("b")
    exporter = export(lively, args=(frozen.prefix,))
    until(lambda: exporter.up(frozen) == 0, what="one that cannot be attached to")
    lively.rx(n=5)
    assert exporter.value("ringtap_queue_packets_total", port="net_ring_b", direction="rx") == 5
    frozen.proc.send_signal(signal.SIGCONT)


def test_ports_that_come_back(play, export):
    """One series for each port, whose counters do not decrease."""
    app = play()
    exporter = export(app)
    name = 'ringtap_queue_packets_total{app="%s",port="net_null7",queue="0",direction="rx"}' \
        % app.prefix
    total = 0
    for _ in range(3):
        port = app.plug("net_null7")
        app.hooked(port)
        app.do(f"poll {port} 0 n=320")
        total += 320
        assert exporter.series()[name] == total
        app.do("unplug net_null7")
    assert exporter.series()[name] == total


def test_counters_never_decrease(forwarding, export):
    exporter = export(forwarding, args=("--collectors", "all"))
    last = {}
    for _ in range(30):
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
        latency = {f'ringtap_latency_seconds_count{{app="{forwarding.prefix}",rx_port="net_ring{a}",'
                   f'tx_port="net_ring{1 - a}"}}' for a in (0, 1)}
        gap = f'ringtap_thread_max_polling_gap_seconds{{app="{forwarding.prefix}",thread="lcore 1"}}'
        until(lambda: {cpu, gap, *latency} <= set(exporter.series()), what="all series")
        found.append({s for s in exporter.series() if 'thread="lcore 1"' in s or
                      s.startswith("ringtap_latency_seconds_bucket")})
        exporter.close()
    assert found[0] == found[1]
    pairs = {tuple(re.findall(r'port="net_ring(\d)"', s)) for s in found[0] if "latency" in s}
    assert pairs == {("0", "1"), ("1", "0")}
    bounds = {re.search(r'le="([^"]+)"', s).group(1) for s in found[0]
              if s.startswith("ringtap_thread_polling_gap_seconds_bucket")}
    assert {"1e-07", "3e-06", "10.0", "+Inf"} <= bounds and len(bounds) == 19, bounds


def test_unknown_values_are_absent(forwarding, export):
    """Counters of the kernel are absent until they were read, instead of 0 with a jump later."""
    exporter = export(forwarding)
    name = f'ringtap_thread_cpu_seconds_total{{app="{forwarding.prefix}",thread="lcore 1"}}'
    values = []

    def known():
        values.append(exporter.series().get(name))
        return values[-1] is not None

    until(known, what="the kernel's counters")
    assert values[-1] > 0
    for _ in range(5):
        known()
    assert 0 not in values


def test_the_number_of_series_is_bounded(play, export):
    """Threads that start and end must not leave a series each."""
    app = play()
    app.ring("a", txq=2)
    exporter = export(app)
    app.do("threads 0 0 count=8 n=10")
    before = len(exporter.series())
    for _ in range(5):
        app.do("threads 0 1 count=8 n=10")
    app.do("threads 0 0 count=8 n=10")
    after = exporter.series()
    tx = [s for s in after if s.startswith("ringtap_queue_packets_total")]
    assert len(tx) <= 3
    assert len(after) < before + 100


def test_bad_requests(app, export):
    exporter = export(app)
    base = exporter.url.rsplit("/", 1)[0]
    assert get(base + "/")[0] == 200
    assert get(base + "/nothing")[0] == 404
    assert get(exporter.url, method="POST")[0] == 405
    assert get(exporter.url, method="HEAD") == (200, "text/plain; version=0.0.4; charset=utf-8", "")
    for line in (b"\x00\xff\x13 garbage\r\n\r\n", b"GET /metrics\r\n\r\n",
                 b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 100000 + b"\r\n\r\n",
                 b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                 b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx"):
        with exporter.connect() as s:
            try:
                s.sendall(line)
                s.recv(4096)
            except OSError:
                pass  # the server closed the connection during the request
    assert exporter.up(app) == 1


def test_silent_connections_do_not_block_others(app, export):
    """The oldest of many connections makes room for a new one."""
    exporter = export(app)
    silent = [exporter.connect() for _ in range(100)]
    try:
        assert exporter.up(app) == 1
    finally:
        for s in silent:
            s.close()


@pytest.mark.slow
def test_request_that_does_not_end(app, export):
    """A client that sends a byte now and then is not silent; its request has a time as a whole."""
    exporter = export(app)
    with exporter.connect() as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        slow.settimeout(1)
        until(lambda: ended(slow), 30, "the end of the connection")


def ended(connection):
    try:
        connection.sendall(b"y")
        return not connection.recv(1)
    except TimeoutError:
        return False
    except OSError:
        return True


def test_page_of_another_name_reads_nothing(app, export):
    """A site may have its name mean this host; a browser then reads for it what is here."""
    exporter = export(app, args=["--host", "metrics.example"])
    answer = {host: get(exporter.url, host=host)[0]
              for host in ("evil.example", "metrics.example:1", "localhost", "[::1]:9777")}
    assert answer == {"evil.example": 403, "metrics.example:1": 200, "localhost": 200, "[::1]:9777": 200}


@pytest.mark.parametrize("number,status", [(signal.SIGTERM, 0), (signal.SIGINT, 0),
                                           (signal.SIGKILL, -9)])
def test_ended_exporter_leaves_no_hooks(app, export, number, status):
    exporter = export(app)
    assert app.one("callbacks 0") > 0
    exporter.proc.send_signal(number)
    assert exporter.proc.wait() == status
    until(lambda: app.one("callbacks 0") == 0, what="removed callbacks")


def test_address_in_use(app, export):
    exporter = export(app)
    done = run([RINGTAP, "export", "--listen", exporter.address])
    assert done.returncode == FAILED
    assert "Address already in use" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("listen,wrong", [
    ("nowhere.invalid:1", "cannot resolve 'nowhere.invalid'"), ("127.0.0.1:x", "'x' is not a port number"),
    ("127.0.0.1:99999", "'99999' is not a port number"), ("[::1", "cannot resolve '[:'"),
    ("foo", "'foo' is not a port number"), ("x" * 300 + ":1", "too long")])
def test_bad_addresses(listen, wrong):
    done = run([RINGTAP, "export", "--listen", listen])
    assert done.returncode == USAGE, done.stderr
    assert f"--listen {listen}: " in done.stderr and wrong in done.stderr
    assert done.stderr.endswith("; give PORT, ADDRESS:PORT, [IPV6]:PORT or :PORT\n")


def test_only_this_host_by_default(app, net, closing):
    """At the documented port, which is free in a new network namespace."""
    exporter = closing(net.hub.start([RINGTAP, "export", app.prefix]))
    exporter.expect("^Exporting at http://127.0.0.1:9777/metrics$")


def test_waits_for_an_application(play, closing):
    """The first application that starts is exported."""
    exporter = closing(Exporter())
    exporter.proc.expect(r"no running DPDK application found")
    exporter.proc.expect(r"nothing to export yet")
    app = play()
    app.ring("a")
    until(lambda: f'app="{app.prefix}"' in exporter.text(), what="its metrics")
