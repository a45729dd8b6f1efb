# SPDX-License-Identifier: BSD-3-Clause
"""ringtap latency compared with an application that measures the time of each packet itself."""

import csv
import json
import math
import re
import signal
from pathlib import Path

import pytest
from harness import wire
from harness.documents import only
from harness.dpdk import RUN_DIR, new_prefix, remove_run_dir
from harness.known import CLONED, HELD, MADE, SENT_TWICE, Known, Measuring
from harness.paths import REPO, RINGTAP
from harness.proc import check, run, until
from harness.view import View, document_of
from harness.wire import ERROR, Impostor, fake_probe, message, sealed, text

MONITOR, MONITORING = 6, 72
BUCKET = 1 / 128  # half a bucket, of the value
SLACK = 100  # ticks: the CPU may read its counter out of order


@pytest.fixture
def known(plugin, closing):
    return closing(Known(plugin))


@pytest.fixture
def latency(closing):
    def start(app, *args, **kwargs):
        return closing(Measuring("latency", app, *args, **kwargs))

    return start


def quantile(values, share):
    return values[max(math.ceil(share * len(values)), 1) - 1]


def counted_below(histogram, value):
    """Packets in buckets that end at or below the value."""
    return sum(n for _, end, n in histogram if end <= value)


def assert_figures(pair, stays, what="cycles"):
    """Each statistic is between those of the minimum and maximum times of the packets."""
    lows, highs = (sorted(s[i] for s in stays) for i in (0, 1))
    figures = pair[what]
    assert pair["packets"] == len(stays)
    assert pair["min_max_exact"]
    assert lows[0] - SLACK <= figures["min"] <= highs[0] + SLACK
    assert lows[-1] - SLACK <= figures["max"] <= highs[-1] + SLACK
    mean = [sum(v) / len(v) for v in (lows, highs)]
    assert mean[0] - SLACK <= figures["mean"] <= mean[1] + SLACK
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
        least, most = quantile(lows, share) - SLACK, quantile(highs, share) + SLACK
        assert least * (1 - BUCKET) <= figures[name] <= most * (1 + BUCKET), name


def assert_histogram(histogram, stays):
    assert sum(n for _, _, n in histogram) == len(stays)
    lows, highs = [s[0] - SLACK for s in stays], [s[1] + SLACK for s in stays]
    for low, end, _ in histogram:
        assert end - low == 1 or (end - low) / low <= 2 * BUCKET
        certain = sum(high < end for high in highs)
        possible = sum(low < end for low in lows)
        assert certain <= counted_below(histogram, end) <= possible


def test_statistics_of_known_times(known, latency, tmp_path):
    it = latency(known, "--duration", "1h", "--json")
    clocks = [known.clocks()]
    stays = known.send([5000, 20000, 20000, 20000, 100000], rounds=150, log=tmp_path / "log")
    until(lambda: known.clocks()[1] - clocks[0][1] > 200_000_000, what="time passes")
    clocks.append(known.clocks())
    output = it.json(signal.SIGINT)
    (pair,) = output["pairs"]
    assert (pair["rx_port"]["name"], pair["tx_port"]["name"]) == ("net_ring_a", "net_ring_b")
    assert output["sample"] == 1 and not output["ended"] and not output["not_timed"]
    assert_figures(pair, stays)
    assert_histogram(pair["histogram_cycles"], stays)
    # No time is shorter than the delay, and most are hardly longer.
    assert pair["cycles"]["min"] >= 5000 - SLACK and pair["cycles"]["p50"] >= 20000 * (1 - BUCKET)
    hz = (clocks[1][0] - clocks[0][0]) / (clocks[1][1] - clocks[0][1]) * 1e9
    assert output["tsc_hz"] == pytest.approx(hz, rel=2e-3)
    for name, cycles in pair["cycles"].items():
        assert pair[f"{name}_ns"] == pytest.approx(cycles * 1e9 / output["tsc_hz"], rel=1e-6, abs=1), name
    assert_example_of_the_manual_page(output, tmp_path / "document")


def assert_example_of_the_manual_page(output, document):
    """It must fail where each packet takes longer: jq's null, of a missing key, is below any limit."""
    text = (Path(__file__).parents[2] / "cli" / "latency" / "latency.txt").read_text()
    example = re.search(r"jq -e \\\n +'([^']+)'", text)[1]
    document.write_text(json.dumps({"applications": [output]}))
    for limit, status in ((0, 1), (10**12, 0)):
        done = run(["jq", "-e", example.replace("50000", str(limit)), document])
        assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.smoke
def test_one_packet_in_n(known, latency, tmp_path):
    it = latency(known, "--duration", "1h", "--sample", "7", "--json")
    stays = known.send([3000], rounds=200, log=tmp_path / "log")
    output = it.json(signal.SIGTERM)
    (pair,) = output["pairs"]
    assert output["sample"] == 7
    assert pair["packets"] in (len(stays) // 7, len(stays) // 7 + 1)
    assert sum(u["unstamped"] for u in output["not_timed"]) == len(stays) - pair["packets"]
    lows, highs = (sorted(s[i] for s in stays) for i in (0, 1))
    assert lows[0] - SLACK <= pair["cycles"]["min"] and pair["cycles"]["max"] <= highs[-1] + SLACK


def test_pairs_the_requested_ports_and_what_has_no_latency(known, latency, tmp_path):
    both = latency(known, "--duration", "1h", "--json")
    one = latency(known, "--duration", "1h", "--json", ports=["net_ring_b"])
    there = known.send([3000], rounds=10, log=tmp_path / "log1")
    back = known.send([9000], rounds=20, log=tmp_path / "log2", ports=(1, 0))
    same = known.send([27000], rounds=30, log=tmp_path / "log3", ports=(0, 0))
    pairs = {(p["rx_port"]["name"], p["tx_port"]["name"]): p for p in both.json(signal.SIGINT)["pairs"]}
    a, b = "net_ring_a", "net_ring_b"
    assert set(pairs) == {(a, b), (b, a), (a, a)}
    for which, stays in (((a, b), there), ((b, a), back), ((a, a), same)):
        assert_figures(pairs[which], stays)
    assert {(p["rx_port"]["name"], p["tx_port"]["name"]) for p in one.json(signal.SIGINT)["pairs"]} == {(a, b), (b, a)}
    # Packets that were not received have none.
    it = latency(known, "--duration", "1h", "--json")
    known.send([4000], rounds=3, how=MADE)
    known.send([4000], rounds=4, how=CLONED)
    known.send([4000], rounds=5, how=HELD)
    stays = known.send([4000], rounds=6, how=SENT_TWICE, log=tmp_path / "log")
    output = it.json(signal.SIGINT)
    (pair,) = output["pairs"]
    assert_figures(pair, stays)
    (untimed,) = output["not_timed"]
    assert untimed.pop("tx_port")["name"] == "net_ring_b"
    assert untimed == {"unstamped": (3 + 6) * 32, "shared": (4 + 5) * 32}


def test_a_later_measurement_counts_from_its_beginning(known, latency, tmp_path):
    first = latency(known, "--duration", "1h", "--json")
    before = known.send([50000], rounds=5, log=tmp_path / "log1")
    second = latency(known, "--duration", "1h", "--json")
    after = known.send([5000], rounds=10, log=tmp_path / "log2")
    (pair,) = second.json(signal.SIGINT)["pairs"]
    assert pair["packets"] == len(after)
    assert not pair["min_max_exact"]  # the probe has those of both measurements
    assert pair["cycles"]["max"] <= (max(s[1] for s in after) + SLACK) * (1 + BUCKET)
    (pair,) = first.json(signal.SIGINT)["pairs"]
    assert_figures(pair, before + after)


def test_parts_of_a_pair(known, latency):
    """All traffic is of one thread, queue and length: each part has it all, and says which it is."""
    its = {by: latency(known, "--duration", "1h", "--json", "--by", by) for by in ("thread", "queue", "size")}
    table = latency(known, "--duration", "1h", "--by", "size")
    known.send([3000], rounds=15)
    pairs = {by: (it.json(signal.SIGINT)["pairs"], by) for by, it in its.items()}
    parts = {}
    for by, (rows, _) in pairs.items():
        (parts[by],) = rows
        assert parts[by]["packets"] == 480 and parts[by]["too_few"] == ["p99", "p999"]
    assert parts["thread"]["thread"]["tid"] in {int(p.name) for p in Path(f"/proc/{known.pid}/task").iterdir()}
    assert parts["queue"]["tx_queue"] == 0 and parts["queue"]["thread"] is None
    assert (parts["size"]["from_bytes"], parts["size"]["to_bytes"]) == (None, 64)
    text = table.finish(signal.SIGINT)
    assert "net_ring_a > net_ring_b, up to 64 bytes: 480 packets" in text
    assert "* fewer than 10 packets took longer: too few for this percentile" in text


def test_intervals(known, latency, tmp_path, browser):
    html = tmp_path / "x.html"
    lines = latency(known, "--duration", "1h", "--json", "--interval", "100ms", "--html", html)
    table = latency(known, "--duration", "1h", "--interval", "100ms")
    for _ in range(3):
        seen = lines.proc.output.count("\n{")
        known.send([3000], rounds=10)
        until(lambda: lines.proc.output.count("\n{") > seen + 1, what="documents of two intervals")
    text = lines.finish(signal.SIGINT)
    documents = [only(json.loads(line)) for line in text.splitlines() if line.startswith("{")]
    assert sum(p["packets"] for d in documents for p in d["pairs"]) == 960
    assert all(d["duration_ns"] > 0 for d in documents)
    begins = [d["begin"] for d in documents]
    assert len(set(begins)) == len(begins) and begins == sorted(begins)
    assert len(re.findall(r"^\S+: \d+\.\d s, every packet timed$", table.finish(signal.SIGINT), re.MULTILINE)) > 3
    panels = {p["id"]: p for p in document_of(html)["panels"]}
    assert sum(n for column in panels["heat"]["counts"] for n in column if n > 0) == 960
    assert len(panels["percentiles"]["series"][0]["values"]) == len(panels["heat"]["counts"])
    View(browser, html).check()


def test_every_output_and_the_end_by_packets(known, latency, tmp_path, browser):
    """Table and histogram, comma-separated values by the man page's jq, the page, and a live line on a terminal."""
    html = tmp_path / "x.html"
    table = latency(known, "--packets", "960", "--histogram")
    values = latency(known, "--packets", "960", "--json", ports=["0"])
    page = latency(known, "--packets", "960", "--html", html)
    live = latency(known, "--duration", "1h", tty=True)
    known.send([3000, 30000], rounds=15)
    assert_table(table.finish())
    of_pairs, of_buckets = re.findall(r"jq -r[ \\\n]+'([^']+)'", (REPO / "cli" / "latency" / "latency.txt").read_text())
    measured = tmp_path / "measured"
    measured.write_text(json.dumps({"applications": [values.json()]}))
    row, rows = (
        list(csv.reader(check(["jq", "-r", program, measured]).splitlines())) for program in (of_pairs, of_buckets)
    )
    assert row[0][:3] == ["net_ring_a", "net_ring_b", "960"] and len(row) == 1
    assert 0 < float(row[0][3]) <= float(row[0][-1])
    assert sum(int(packets) for *_, packets in rows) == 960
    assert all(int(low) < int(end) for _, _, low, end, _ in rows)
    page.finish()
    spread, tail, table = (
        next(p for p in document_of(html)["panels"] if p["id"] == i) for i in ("spread", "tail", "pairs")
    )
    for panel in spread, tail:
        assert sum(panel["series"][0]["values"]) == 960 and panel["series"][0]["name"] == "net_ring_a > net_ring_b"
    assert [m["name"] for m in spread["marks"]] == ["p50", "p90", "p99", "p99.9"]
    assert table["rows"][0][:2] == ["net_ring_a > net_ring_b", 960]
    View(browser, html).check()
    live.proc.expect(r"\r\d+\.\d s, 960 packets timed ")
    assert re.search(r"^net_ring_a > net_ring_b: 960 packets", live.finish(signal.SIGINT), re.MULTILINE)


NS_OF = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
CYCLES_OF = {"": 1, "M": 1e6, "G": 1e9}  # a packet waits for milliseconds while the thread has no CPU


def assert_table(output):
    assert "every packet timed" in output
    assert re.search(r"^net_ring_a > net_ring_b: 960 packets$", output, re.MULTILINE)
    header = re.search(r"^ +min +mean +p50 +p90 +p99 +p99\.9 +max$", output, re.MULTILINE)
    rows = re.findall(r"^ +(cycles|time) +([\d.,* numsMG]+)$", output, re.MULTILINE)
    assert header and [unit for unit, _ in rows] == ["cycles", "time"]
    for what, row in rows:
        cells = re.findall(r"([\d.,]+)( [num]?s| [MG])?\*?(?: |$)", row)
        units = NS_OF if what == "time" else CYCLES_OF
        numbers = [float(n.replace(",", "")) * units[unit.strip()] for n, unit in cells]
        assert len(numbers) == 7
        assert numbers == sorted(numbers[:1] + numbers[2:])[:1] + numbers[1:2] + sorted(numbers[2:])
    bars = re.findall(r"^ +[\d.]+ [num]?s - +[\d.]+ [num]?s +([\d,]+) +[\d.]+ %", output, re.MULTILINE)
    assert sum(int(n.replace(",", "")) for n in bars) == 960


def test_killed_reader_leaves_no_hooks_and_a_killed_application_its_times(known, latency, tmp_path):
    it = latency(known, "--duration", "1h")
    assert known.one("callbacks 0") == 2 and known.one("callbacks 1") == 2
    it.proc.kill()
    for port in (0, 1):
        until(lambda: known.one(f"callbacks {port}") == 0, what="callbacks are gone")
    again = latency(known, "--packets", "32", "--json")
    known.send([3000])
    assert again.json()["pairs"][0]["packets"] == 32
    it = latency(known, "--duration", "1h", "--json")
    stays = known.send([3000], rounds=5, log=tmp_path / "log")
    known.proc.kill()
    output = it.finish()
    assert f"{known.prefix} has ended" in output
    done = only(json.loads(output[output.index("{") :]))
    assert done["ended"]
    assert_figures(done["pairs"][0], stays)


def test_port_is_removed(play, latency):
    app = play()
    for name in ("net_null0", "net_null1"):
        app.plug(name)
    it = latency(app, "--duration", "1h", "--json")
    app.do("loop 0 1")
    until(lambda: app.one("count") > 1000, what="packets flow")
    app.do("unloop")
    app.do("unplug net_null1")
    (pair,) = it.json(signal.SIGINT)["pairs"]
    assert (pair["rx_port"]["name"], pair["tx_port"]["name"]) == ("net_null0", "net_null1")
    assert pair["packets"] > 0


def test_stock_testpmd(testpmd):
    """It forwards; then in a mode that resets flags, of which a sample is timed, and is marked in top, too."""
    app = testpmd("net_null0", "net_null1", lcores="0@0,127@1")
    app.start()
    output = only(json.loads(check([RINGTAP, "latency", app.prefix, "--packets", "100000", "--json"])))
    app.stop()
    assert {(p["rx_port"]["name"], p["tx_port"]["name"]) for p in output["pairs"]} == {
        ("net_null0", "net_null1"),
        ("net_null1", "net_null0"),
    }
    assert sum(p["packets"] for p in output["pairs"]) >= 100000
    assert all(0 < p["min_ns"] <= p["p50_ns"] <= p["max_ns"] for p in output["pairs"])
    app.cmd("set fwd mac")
    app.start()
    output = only(json.loads(check([RINGTAP, "latency", app.prefix, "--packets", "20000", "--sample", "16", "--json"])))
    assert not output["pairs"]
    inferred = sum(p["packets"] for p in output["inferred"])
    assert inferred >= 20000 and sum(u["unstamped"] for u in output["not_timed"]) > 10 * inferred

    def pairs():
        report = json.loads(
            check([RINGTAP, "top", "--once", "--interval", "0.3s", "--json", "--collectors", "latency", app.prefix])
        )
        return [p for p in report["applications"][0]["latency"] if p["packets"]]

    assert all(p["inferred"] for p in until(pairs, what="packets are timed"))
    app.stop()


def test_what_is_not_there(known, testpmd):
    """Traffic, an application, a port, a folder; options are in cli/usage_test.c."""
    done = run([RINGTAP, "latency", known.prefix, "--duration", "0.2s"])
    assert done.returncode == 0, done.stderr
    assert "No packet was received and sent again" in done.stdout
    for command in ("latency", "memory"):
        for args, words in (
            (["--html", "/nonexistent/x.html"], "No such file"),
            (["no-such-app"], "no application is called"),
        ):
            done = run([RINGTAP, command, *args])
            assert done.returncode == 1 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
            assert done.stdout == ""
    for spec in (f"{known.prefix}:7", f"{known.prefix}:nowhere"):
        done = run([RINGTAP, "latency", spec, "--duration", "1s"])
        recorded = run([RINGTAP, "record", spec, "-w", "/dev/null"])
        port = spec.split(":")[1]
        assert f"application '{known.prefix}' has no port '{port}'; there is net_ring_a, " in done.stderr
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        assert recorded.returncode == 1
        assert recorded.stderr == done.stderr.replace("latency:", "record:")
    bare = testpmd("net_null0", plugin=None)
    done = run([RINGTAP, "latency", bare.prefix, "--duration", "1s"])
    assert done.returncode == 1 and "probe" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = run([RINGTAP, "latency", f"{known.prefix}:0", f"{bare.prefix}:0"])
    assert done.returncode == 2 and "one application only" in done.stderr


# ---- applications that lie: see also fuzz/fuzz_stats.c


def monitor_answer(reply):
    """An answer for Impostor that is correct up to RT_MSG_MONITOR."""
    honest = fake_probe([])

    class Once:
        def __init__(self, connection, request):
            self.connection, self.request = connection, request

        def recvmsg(self, *_):
            request, self.request = self.request, b""
            return request, [], 0, None

        def __getattr__(self, name):
            return getattr(self.connection, name)

    def answer(connection):
        while request := connection.recv(200000):
            if wire.HEADER.unpack_from(request)[2] == MONITOR:
                reply(connection)
            else:
                honest(Once(connection, request))

    return answer


@pytest.fixture
def impostor(closing):
    """impostor(kind, reply) simulates an application that sends this reply to a monitor; returns
    its prefix."""
    made = []

    def start(kind, reply):
        made.append(new_prefix(kind))
        closing(Impostor(RUN_DIR / made[-1], "ringtap.sock", monitor_answer(reply)))
        return made[-1]

    yield start
    for prefix in made:
        remove_run_dir(prefix)


def test_impossible_statistics_and_an_old_probe(impostor):
    for start, size, words in ((b"", 0, "too short"), (b"", 65536, "magic"), (b"RTFIGUR\0\x63", 65536, "version")):
        memory = sealed(start.ljust(size, b"\0"))
        prefix = impostor("liar", lambda c, fd=memory: wire.socket.send_fds(c, [message(MONITORING)], [fd]))
        for command in ("latency", "memory"):
            done = run([RINGTAP, command, prefix])
            assert done.returncode == 1 and words in done.stderr
            assert len(done.stderr.splitlines()) == 1
    refusal = message(ERROR, wire.struct.pack("<i", -71) + text("unknown message", 256))
    prefix = impostor("old", lambda c: c.send(refusal))
    done = run([RINGTAP, "latency", prefix])
    assert done.returncode == 1 and "does not know statistics" in done.stderr
