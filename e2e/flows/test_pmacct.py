# SPDX-License-Identifier: BSD-3-Clause
"""Flows and packets that ringtap flows sends, as pmacct's collectors count them."""

import json
import signal

import pytest
from flows.test_collectors import COUNT, by_tshark, file, free_port, receive_queue, report_of  # noqa: F401
from harness.proc import Proc, until

PEN = 32473  # RFC 5612 reserves it for examples


class Accountant:
    """nfacctd or sfacctd, which prints what it has counted when it ends."""

    def __init__(self, program, folder, primitives="", names=()):
        folder.mkdir()
        self.port, self.out = free_port(), folder / "out.json"
        (folder / "primitives").write_text(primitives)
        (folder / "config").write_text(
            f"{program}_ip: 127.0.0.1\n{program}_port: {self.port}\nplugins: print\nprint_output: json\n"
            f"print_output_file: {self.out}\nprint_refresh_time: 3600\nplugin_pipe_size: 10000000\n"
            f"print_cache_entries: 16411\naggregate_primitives: {folder / 'primitives'}\n"
            f"aggregate: {','.join(['src_host, dst_host, proto, src_port, dst_port', *names])}\n"
            f"{program}_renormalize: true\n"
        )
        self.proc = Proc([program, "-f", folder / "config"])
        until(lambda: receive_queue(self.port) is not None, what=f"{program} listens")

    def records(self):
        until(lambda: receive_queue(self.port) == 0, what="the collector has read everything")
        self.proc.send_signal(signal.SIGINT)
        self.proc.wait()
        until(self.out.exists, what="its plugin has written")
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def close(self):
        self.proc.close()


@pytest.fixture
def accountant(closing, tmp_path):
    return lambda program, *args: closing(Accountant(program, tmp_path / program, *args))


def counted(records):
    """{(addresses, protocol, ports): [packets, bytes]}."""
    numbers = {"udp": 17, "tcp": 6, "ipv6-icmp": 58}
    out = {}
    for r in records:
        proto = numbers.get(r["ip_proto"], r["ip_proto"])
        # The type of ICMP may be where a port would be.
        ports = (0, 0) if proto == 58 else (r["port_src"], r["port_dst"])
        sums = out.setdefault((r["ip_src"], r["ip_dst"], proto, *ports), [0, 0])
        sums[0] += r["packets"]
        sums[1] += r["bytes"]
    return out


def test_ipfix_in_nfacctd_with_elements_of_an_enterprise(file, report_of, accountant):  # noqa: F811
    primitives = "".join(f"name=own{n} field_type={PEN}:{n} len=8 semantics=u_int\n" for n in (1, 2, 3))
    nfacctd = accountant("nfacctd", primitives, ["own1", "own2", "own3"])
    address = f"127.0.0.1:{nfacctd.port}"
    report = report_of("--sample", "1", "--ids", "--fates", "--ipfix", address, "--pen", str(PEN))
    records = nfacctd.records()
    assert counted(records) == by_tshark(file)
    p99 = {
        f["source_port"]: f["latency"]["p99_ns"]["value"] for f in report["flows"] if f["source_port"] in (4242, 4243)
    }
    found = {r["port_src"]: (int(r["own1"]), int(r["own2"]), int(r["own3"])) for r in records}
    for port, ns in p99.items():
        assert 0 < found[port][0] <= found[port][1] == pytest.approx(ns, abs=1) and found[port][2] == 0


@pytest.mark.nightly
def test_sflow_in_sfacctd(file, report_of, accountant):  # noqa: F811
    """Scaled by the rates, the packets are all of them, as far as chance goes."""
    sfacctd = accountant("sfacctd")
    report = report_of("--sample", "1", "--sflow", f"127.0.0.1:{sfacctd.port}")
    records = counted(sfacctd.records())
    assert records.keys() <= by_tshark(file).keys()
    assert report["exports"][0]["records"] > 500
    assert sum(packets for packets, _bytes in records.values()) == pytest.approx(COUNT, rel=0.3)
