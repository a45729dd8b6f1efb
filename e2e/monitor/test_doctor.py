# SPDX-License-Identifier: BSD-3-Clause
"""Real faults, with unmodified testpmd, and the verdicts of `ringtap doctor`."""

import json
import re
import signal
import struct
import subprocess
import time

import pytest
from harness import view
from harness.cases import nightly
from harness.debugger import Debugger
from harness.doctor import FAULT, Diagnosis
from harness.monitor import GAPS
from harness.paths import RINGTAP
from harness.pcap import frame
from harness.proc import Proc, check, freeze, of_tasks, run, until
from harness.view import View

# 2,000 random writes a packet take tens of microseconds: some 10,000 packets a second are too many.
SLOW = ("--forward-mode=noisy", "--noisy-lkup-memory=8", "--noisy-lkup-num-writes=2000")


def test_idle(testpmd):
    pmd = testpmd("net_ring0", args=("--forward-mode=rxonly",))
    pmd.start()
    found = Diagnosis(pmd)
    assert found.sound() in ("idle", None)
    assert not found.has("healthy")


def test_a_worker_that_hung_before(busy):
    """Nothing has observed its last poll."""
    busy.do("hang")
    found = Diagnosis(busy)
    assert found.faults == ["not_polling"]
    assert re.search(r"worker.*blocked, in futex\(\)", found.evidence("not_polling"))


def stop(app, how, closing):
    """Returns how the kernel shows the worker then."""
    if how == "signal":
        freeze(app.pid)
        return "stopped by a signal"
    names = of_tasks(app.pid, "comm")
    closing(Debugger([tid for tid, name in names.items() if how == "debugger" or "worker" in name]))
    return "stopped by a debugger"


@pytest.mark.parametrize("how", ["signal", nightly("debugger"), nightly("debugger of the worker")])
def test_a_worker_that_is_stopped_meanwhile(how, busy, monitor, closing):
    """Alone or with the process, whose control thread does not read the time of polls then."""
    doctor = closing(Proc([RINGTAP, "doctor", "--json", "--duration", "600s", busy.prefix], stdout=subprocess.PIPE))
    until(lambda: busy.one("callbacks 0") > 0, what="attached doctor")
    seen = monitor(busy, GAPS)
    until(
        lambda: any(t.poll_tsc for t in seen.threads.values()),
        what="the time of a poll, which the control thread reads",
    )
    seen.fresh()  # the doctor, which came before, now has the first readings that it waits for, and watches
    shown = stop(busy, how, closing)
    due = time.monotonic() + 1.5
    until(lambda: time.monotonic() > due, what="time to watch")
    doctor.send_signal(signal.SIGINT)
    (app,) = json.loads(doctor.child.stdout.read())["applications"]
    assert doctor.wait() == FAULT
    (hung,) = (v for v in app["verdicts"] if v["verdict"] == "hung")
    text = "\n".join(hung["evidence"])
    (worker,) = (tid for tid, name in of_tasks(busy.pid, "comm").items() if "worker" in name)
    assert f", {worker})" in f"{hung['where']}{text}" and f"the kernel shows it {shown}" in text
    assert re.search(r"its last poll was at \d\d:\d\d:\d\d\.\d{3}, [1-9]\d*\.\d s ago", text), text
    assert ("continue it" in text) == (how != "debugger of the worker")


def test_healthy_application(testpmd, net):
    """An application that answers pings, and has idle time."""
    host, device = net.add_host("192.0.2.1")
    pmd = testpmd(f"net_af_packet0,iface={device}", namespace=net.hub, args=("--forward-mode=icmpecho",))
    pmd.start()
    ping = host.start(["ping", "-f", "-w", 60, "192.0.2.77"])
    try:
        until(lambda: pmd.stats(0)["TX-packets"] > 100, what="answered pings")
        found = Diagnosis(pmd)
    finally:
        ping.close()
    assert found.sound() in ("healthy", None)
    if not found.preempted:
        assert "nothing is known to be lost" in found.evidence("healthy")


def test_open_vswitch_is_healthy(ovs, net):
    """A real application, with a moderate load."""
    hosts = [net.add_host(f"192.0.2.{i}") for i in (1, 2)]
    switch = ovs()
    for i, (_, device) in enumerate(hosts):
        switch.add_port(f"p{i}", device)
    ping = hosts[0][0].start(["ping", "-f", "-w", 60, "192.0.2.2"])
    try:
        found = Diagnosis(switch, seconds=2)
    finally:
        ping.close()
    assert found.sound() in ("healthy", None)


def test_application_too_slow(testpmd, wire):
    pmd = testpmd(f"net_pcap0,iface={wire.device}", "net_null1", namespace=wire.hub, args=SLOW)
    pmd.start()
    wire.send()
    until(lambda: pmd.stats(0)["RX-missed"] > 1000, what="missed packets")
    found = Diagnosis(pmd, seconds=2)
    assert found.others == ["too_slow"]
    assert found.get("too_slow")["where"] == "net_pcap0"
    missed = re.search(r"dropped ([\d,]+) packets .*missed", found.evidence("too_slow"))
    assert int(missed.group(1).replace(",", "")) > 100
    assert "RSS" in found.get("too_slow")["advice"]


NOISY_FIFO = ("--forward-mode=noisy", "--noisy-tx-sw-buffer-size=2048")


def test_mempool_exhausted(testpmd):
    """A software queue holds all buffers."""
    pmd = testpmd("net_null0", "net_null1", mbufs=1100, args=NOISY_FIFO)
    pmd.start()
    found = Diagnosis(pmd)
    assert found.others == ["pool_exhausted"]
    assert found.get("pool_exhausted")["where"] == "mb_pool_0"
    assert "of its 1,100 buffers" in found.evidence("pool_exhausted")


@pytest.mark.alone  # with half of a CPU, threads receive too few packets for a verdict
def test_tx_refuses(testpmd):
    """No thread reads net_ring0."""
    pmd = testpmd("net_ring0", "net_null1", args=("--forward-mode=txonly",))
    pmd.start()
    until(lambda: pmd.stats(0)["TX-packets"] == 1023, what="a full ring")
    found = Diagnosis(pmd)
    assert found.others == ["tx_refused"]
    assert found.get("tx_refused")["where"] == "net_ring0"
    handed, sent, unsent = (
        int(n.replace(",", ""))
        for n in re.search(
            r"([\d,]+) packets handed over in [\d.]+ s, ([\d,]+) sent: ([\d,]+)", found.evidence("tx_refused")
        ).groups()
    )
    assert handed > 1000 and sent == 0 and unsent == handed
    done = run([RINGTAP, "doctor", "--duration", "1s", pmd.prefix, pmd.prefix])
    assert done.returncode == FAULT
    assert done.stdout.count("fault: TX refuses packets: net_ring0") == 1
    assert "next: " in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_preempted(testpmd):
    """Another process runs on the same CPU."""
    pmd = testpmd("net_ring0", args=("--forward-mode=rxonly",))
    pmd.start()
    rival = Proc(["taskset", "-c", "1", "sh", "-c", "while :; do :; done"])
    try:
        found = Diagnosis(pmd, seconds=2)  # the kernel's counters are read twice a second
    finally:
        rival.close()
    assert found.faults == ["preempted"], found.verdicts
    assert found.get("preempted")["where"].startswith("lcore 1 (")
    assert re.search(r"without a CPU [3-9]\d\.\d %", found.evidence("preempted"))
    assert "though there was no work" in found.evidence("preempted")


def pcap_file(path, packets):
    """Many identical packets."""
    record = struct.pack("<IIII", 0, 0, 60, 60) + frame(60)
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + record * packets)
    return path


@pytest.mark.alone  # with half of a CPU, threads receive too few packets for a verdict
def test_uneven_queues(testpmd, tmp_path):
    """One queue has traffic for minutes, the other a single packet."""
    much = pcap_file(tmp_path / "much.pcap", 1_000_000)
    little = pcap_file(tmp_path / "little.pcap", 1)
    pmd = testpmd(
        f"net_pcap0,rx_pcap={much},rx_pcap={little}",
        "net_null1",
        args=("--rxq=2", "--txq=2", "--forward-mode=noisy", "--noisy-lkup-memory=8", "--noisy-lkup-num-writes=500"),
    )
    pmd.start()
    found = Diagnosis(pmd, seconds=2)
    assert found.others == ["uneven_queues"]
    assert found.get("uneven_queues")["where"] == "net_pcap0"
    assert "queue 0 has 2.0 times its share of 2 queues" in found.evidence("uneven_queues")
    assert "0: 100.0 %, 1: 0.0 %" in found.evidence("uneven_queues")


@pytest.mark.alone  # with half of a CPU, threads receive too few packets for a verdict
def test_scattered_buffers(testpmd):
    """Pages of 4 KiB, and a pool without caches, which uses all its buffers in turn."""
    pmd = testpmd("net_null0", args=("--forward-mode=rxonly", "--mbcache=0"))
    pmd.start()
    pages = json.loads(check([RINGTAP, "top", "--once", "--json", "--interval", "0.2s", pmd.prefix]))
    if pages["applications"][0]["pools"][0]["page_bytes"] != 4096:
        pytest.skip("the kernel gives it huge pages, asked or not")
    found = Diagnosis(pmd)
    # No device translates addresses: a note. A unit test covers the fault.
    assert found.sound() in ("healthy", None)
    assert found.get("scattered_buffers")["grade"] == "note"
    assert "no device that reads memory" in found.evidence("scattered_buffers")
    pages = re.search(r"lie on (\d+) different pages of 4 KiB", found.evidence("scattered_buffers"))
    # 2,368 bytes each, adjacent or one a page.
    assert 500 <= int(pages.group(1)) <= 1000


@pytest.mark.alone  # with half of a CPU, threads receive too few packets for a verdict
def test_the_page_has_the_verdicts(testpmd, tmp_path, browser):
    """Those of the JSON, in their order, and a row for the thread and for the port."""
    pmd = testpmd("net_ring0", args=("--forward-mode=rxonly",))
    pmd.start()
    html = tmp_path / "doctor.html"
    done = run([RINGTAP, "doctor", "--json", "--duration", "2s", "--html", html, pmd.prefix])
    (app,) = json.loads(done.stdout)["applications"]
    page = view.document_of(html)
    names = [f"{pmd.prefix}: {v['title']}" + (f": {v['where']}" if v["where"] else "") for v in app["verdicts"]]
    assert [f["title"] for f in page["findings"]] == names
    facts = {f["name"]: f["value"] for f in page["facts"]}
    assert facts["host"] == page["host"] and facts["begin"] == page["origin"]
    assert [f["evidence"] for f in page["findings"]] == [v["evidence"] for v in app["verdicts"]]
    threads, ports = ({p["id"]: p["rows"] for p in page["panels"]}[name] for name in ("threads", "ports"))
    assert [row[1][:7] for row in threads] == ["lcore 1"] and [row[1] for row in ports] == ["net_ring0"]
    View(browser, html).check()


def test_several_faults_are_ranked(testpmd):
    """Lost packets rank before wasted time. Full bursts without loss are a note."""
    pmd = testpmd("net_null0", "net_null1", args=("--burst=2", "--forward-mode=rxonly", "--mbcache=0"))
    pmd.start()
    found = Diagnosis(pmd)
    assert found.others == ["small_bursts"], found.verdicts
    assert "2.00 packets in a poll" in found.evidence("small_bursts")
    assert "no more than 2" in found.evidence("small_bursts")
    assert "--burst=32" in found.get("small_bursts")["advice"]
    assert found.get("saturated")["grade"] == "note"
    assert "creates packets on demand" in found.evidence("saturated")
    grades = [v["grade"] for v in found.verdicts]
    assert grades == sorted(grades, key=["fault", "ok", "note"].index)


def test_killed_doctor_leaves_nothing(play):
    app = play()
    app.ring("a")
    for number in (signal.SIGKILL, signal.SIGINT):
        doctor = Proc([RINGTAP, "doctor", "--duration", "600s", app.prefix])
        try:
            until(lambda: app.one("callbacks 0") > 0, what="attached doctor")
            doctor.send_signal(number)
            doctor.wait()
        finally:
            doctor.close()
        until(lambda: app.one("callbacks 0") == 0, what="removed callbacks")
