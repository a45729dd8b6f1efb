# SPDX-License-Identifier: BSD-3-Clause
"""Measures archives beside other programs that read recordings: one round after the other, on the same files."""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from . import generate, layout, show, units
from .bench_tools import PYTHON, Bench, drop_caches, evict, files_below, warm
from .errors import Refused

if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from .main import Parser
    from .store import Archive

PARTS = ("index", "size", "parallel", "growth")
SLICE = 2_000_000  # packets of a file of the growing archive
SLICE_RATE = 3333  # a second: ten minutes a file
FIRST_SEED = 1000
TSHARK_SHARE = 40  # tshark reads every so-manieth part of what the others read: it takes that much longer
FIELDS = (
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "frame.interface_id",
    "vlan.id",
    "eth.type",
    "ip.src",
    "ip.dst",
    "ip.proto",
    "ip.id",
    "udp.srcport",
    "udp.dstport",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.flags",
    "tcp.seq",
)
MODULE = (PYTHON, "-m", "ringtap_archive.main")

# What an ingest does for the index alone: rows and flows to Parquet files; neither copy nor checksum of the packets.
INDEX = """
import sys
from pathlib import Path
import pyarrow as pa
from ringtap_archive import decoder, index
pa.set_cpu_count(1)
folder = Path(sys.argv[2])
with decoder.open(sys.argv[1], by_flow=True) as source:
    for i, part in enumerate(source.parts()):
        packets = index.Packets(folder / f"{i}.packets.parquet", 1 << 20)
        for batch in part.batches():
            packets.add(batch)
        packets.finish(None)
        index.write_flows(folder / f"{i}.flows.parquet", part.flow_batches())
"""
DECODE = """
import sys
from ringtap_archive import decoder
with decoder.open(sys.argv[1]) as source:
    for part in source.parts():
        for batch in part.batches():
            pass
        for batch in part.flow_batches():
            pass
"""
# Times are taken inside, as the start of Python and its libraries costs the same for any query.
ASK = """
import json, sys, time
begin = time.monotonic()
from ringtap_archive import engine
loaded = time.monotonic()
with engine.open(sys.argv[1], threads=int(sys.argv[3])) as con:
    opened = time.monotonic()
    rows = con.sql(sys.argv[2]).arrow()
print(json.dumps({"load": loaded - begin, "open": opened - loaded, "query": time.monotonic() - opened, "rows": rows.num_rows,
                  "last": [str(v) for v in (rows.to_pylist() or [{}])[-1].values()]}))
"""


def arguments(parser: Parser) -> None:
    parser.description = "Measures archives beside tshark, tcpdump and capinfos."
    parser.add_argument(
        "--only", type=_parts, default=PARTS, metavar="PARTS", help=f"a list of {', '.join(PARTS)} (default: all)"
    )
    parser.add_argument(
        "-c", "--packets", type=units.count, default=4_000_000, metavar="N", help="in a file (default: 4M)"
    )
    parser.add_argument(
        "--growth",
        type=_sizes,
        default=(1_000_000, 10_000_000),
        metavar="SIZES",
        help="packets of the archive that grows (default: 1M,10M)",
    )
    parser.add_argument(
        "--copies",
        type=int,
        default=1,
        metavar="N",
        help="then also N recorders with the same packets, in copies of the index (default: 1: no)",
    )
    parser.add_argument("--repetitions", type=units.positive, default=5, metavar="N", help="repetitions (default: 5)")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="for files and archives, which stay there (default: a temporary one)"
    )
    parser.add_argument(
        "--cpu",
        type=int,
        default=max(os.sched_getaffinity(0)),
        metavar="N",
        help="for what one core does (default: the last)",
    )
    parser.add_argument(
        "--drop-caches", action="store_true", help="empty all caches of the machine, instead of evicting files; root"
    )
    parser.add_argument("--result", type=Path, metavar="FILE", help="write all values as JSON")


def _parts(text: str):
    wanted = tuple(text.split(","))
    if unknown := set(wanted) - set(PARTS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: unknown; there are {', '.join(PARTS)}")
    return wanted


def _sizes(text: str):
    return tuple(sorted(map(units.count, text.split(","))))


def made(folder: Path, name: str, **options) -> Any:
    """Makes the file if it is missing. Returns it."""
    path = folder / f"{name}.pcapng"
    if not path.exists():
        draft = folder / f".{name}"
        generate.write(draft, **options)
        draft.rename(path)
    return path


def ingest(bench: Bench, archive: Any, files: Any, *options, cpus: Any = None) -> Any:
    return bench.run([*MODULE, "ingest", "-A", archive, "--recorder", "bench", "-q", *options, *files], cpus)


def index_speed(bench: Bench, args: Namespace, folder: Path) -> None:
    """One core: decoding, the index, the whole ingest; other programs on the same file."""
    bench.say("index: 64-byte UDP, 100,000 flows, one core")
    path = made(folder, "udp64", packets=args.packets, flows=100_000, size="64", traffic="udp")
    part = made(
        folder, "udp64-part", packets=max(1, args.packets // TSHARK_SHARE), flows=100_000, size="64", traffic="udp"
    )
    fields = [word for name in FIELDS for word in ("-e", name)]
    for _ in range(args.repetitions):
        warm(path)
        bench.spin()
        for name, command, packets in (
            ("decode", [PYTHON, "-c", DECODE, path], args.packets),
            ("index", [PYTHON, "-c", INDEX, path], args.packets),
            ("ingest --no-compress", ["--no-compress"], args.packets),
            ("ingest", [], args.packets),
            ("capinfos", ["capinfos", "-c", path], args.packets),
            ("tcpdump -r", ["tcpdump", "-nr", path], args.packets // 8),
            ("tshark -T fields", ["tshark", "-n", "-r", part, "-T", "fields", *fields], args.packets // TSHARK_SHARE),
        ):
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                if name.startswith("ingest"):
                    took = ingest(bench, Path(scratch) / "archive", [path], *command)
                elif name == "tcpdump -r":
                    took = bench.run([*command, "-c", packets], keep=False)
                else:
                    took = bench.run([*command, scratch] if name == "index" else command, keep=False)
            bench.add(f"{name}: packets a second", "M/s", packets / took.seconds / 1e6)
            bench.add(f"{name}: packets a second of CPU time", "M/s", packets / took.cpu_seconds / 1e6)
            bench.add(f"{name}: memory", "MiB", took.memory / 2**20)


def _index_bytes(archive: Any):
    """Bytes of the index and of the packets, each packet."""
    parts = layout.list_parts(archive)
    rows = sum(part.meta["packets"]["rows"] for part in parts)
    index = sum(part.packets.stat().st_size + part.flows.stat().st_size for part in parts)
    return (
        index / rows,
        sum(part.pcapng.stat().st_size for part in parts) / rows,
        sum(part.meta["pcapng"]["uncompressed"] for part in parts) / rows,
    )


def index_size(bench: Bench, args: Namespace, folder: Path) -> None:
    bench.say("size: bytes a packet")
    for name, text, options in (
        ("realistic", "realistic mix, 10,000 flows", {"flows": 10_000}),
        ("few", "realistic mix, 20 flows", {"flows": 20}),
        ("udp64", "64-byte UDP, 100,000 flows", {"flows": 100_000, "size": "64", "traffic": "udp"}),
        ("forwarded", "realistic mix, 10,000 flows, ids and fates", {"flows": 10_000, "fates": True}),
    ):
        packets = args.packets if name == "udp64" else args.packets // 2
        path = made(folder, name, packets=packets, **options)
        for lean in (False, True):
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                archive = Path(scratch) / "archive"
                ingest(bench, archive, [path], *(["--lean"] if lean else []))
                index, stored, plain = _index_bytes(archive)
            bench.add(f"index{', --lean' if lean else ''}: {text}", "B", index)
            if not lean:
                bench.add(f"packets, compressed: {text}", "B", stored)
                bench.add(f"packets as recorded: {text}", "B", plain)


def parallel(bench: Bench, args: Namespace, folder: Path) -> None:
    """Two processes of ingest on two CPUs into one archive, beside one."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Refused("parallel: needs two CPUs; leave it out with --only")
    bench.say("parallel: two ingests on two cores")
    paths = [
        made(folder, f"parallel{i}", packets=args.packets // 2, flows=100_000, size="64", traffic="udp", seed=2 + i)
        for i in (0, 1)
    ]
    for _ in range(args.repetitions):
        for path in paths:
            warm(path)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            archive = Path(scratch) / "archive"
            one = ingest(bench, archive, paths[:1], cpus={cpus[0]}).seconds
            shutil.rmtree(archive)
            both = bench.run(
                [
                    "sh",
                    "-c",
                    f"taskset -c {cpus[0]} $0 & pid=$!; taskset -c {cpus[1]} $1; wait $pid".replace(
                        "$0", _words(archive, paths[0])
                    ).replace("$1", _words(archive, paths[1])),
                ],
                cpus=set(cpus),
            ).seconds
        bench.add("two ingests: packets a second, in multiples of one ingest's", "x", 2 * one / both)


def _words(archive: Any, path: Any):
    return " ".join([*MODULE, "ingest", "-A", str(archive), "--recorder", path.stem, "-q", str(path)])


def grow(archive: Any, packets: Any, say: Any = print) -> None:
    """Ingests slices until the archive has that number of packets; each is generated and removed again."""
    archive.mkdir(parents=True, exist_ok=True)
    count = sum(part.meta["packets"]["rows"] for part in layout.list_parts(archive))
    start = generate.parse_time(generate.START)
    while count < packets:
        size = min(SLICE, packets - count)
        path = archive.parent / f"from{count}.pcapng"
        generate.write(
            path,
            size,
            seed=FIRST_SEED + count,
            flows=100_000,
            size="64",
            rate=SLICE_RATE,
            start_ns=start + count * 10**9 // SLICE_RATE,
        )
        subprocess.run(
            [*MODULE, "ingest", "-A", str(archive), "--recorder", "bench", "-q", "--remove", str(path)], check=True
        )
        count += size
        say(f"  {count:,} packets")


def _cold(args: Namespace, archive: Archive):
    if args.drop_caches:
        drop_caches()
    else:
        evict(files_below(archive))


def _ask(bench: Bench, archive: Archive, sql: str, cpus: Any):
    """One query in a process of its own: seconds of opening and of the query, rows."""
    took = bench.run([PYTHON, "-c", ASK, archive, sql, len(cpus)], cpus)
    answer = json.loads(took.output)
    return answer, took


def _some_flow(bench: Bench, archive: Archive, cpus: Any):
    """A TCP conversation of 1,000 to 3,000 packets of the middle of the archive."""
    sql = (
        "SELECT flow_id, packets_ab + packets_ba AS packets, first_ns FROM flows WHERE protocol = 6 "
        "AND packets_ab + packets_ba BETWEEN 1000 AND 3000 ORDER BY first_ns, flow_id"
    )
    answer, _ = _ask(
        bench,
        archive,
        f"WITH f AS ({sql}) SELECT flow_id, packets FROM f LIMIT 1 OFFSET (SELECT count(*) // 2 FROM f)",
        cpus,
    )
    return int(answer["last"][0])


QUERIES = {
    "rows of a flow of 1,000 to 3,000 packets": "SELECT * FROM packets WHERE flow_id = {flow}",
    "the flow itself": "SELECT * FROM flows WHERE flow_id = {flow}",
    "ten talkers, of flows": "SELECT src, sum(bytes_ab) AS b FROM flows GROUP BY src ORDER BY b DESC, src LIMIT 10",
    "ten talkers, of packets": "SELECT src, sum(length) AS b FROM packets GROUP BY src ORDER BY b DESC, src LIMIT 10",
    "count of all packets": "SELECT count(*) FROM packets",
}


def multiply(archive: Any, copies: Any) -> Any:
    """The same packets as if other recorders had them too: indexes are copied, packets are the same files."""
    whole = archive.with_name(f"{archive.name}-{copies}")
    shutil.rmtree(whole, ignore_errors=True)
    for number in range(copies):
        name = f"bench{number}"
        shutil.copytree(
            archive / "recorder=bench", whole / f"recorder={name}", copy_function=functools.partial(_copy_as, name)
        )
    (whole / layout.LOCK).touch()
    return whole


def _copy_as(recorder: str, path: Any, to: Any):
    path, to = Path(path), Path(to)
    if path.name.endswith(layout.META):
        to.write_text(json.dumps(json.loads(path.read_text()) | {"recorder": recorder}))
    elif path.suffix == ".parquet":
        shutil.copyfile(path, to)
    else:
        os.link(path, to)


def growth(bench: Bench, args: Namespace, folder: Path) -> None:
    archive = folder / "growth"
    for packets in args.growth:
        grow(archive, packets, bench.say)
        flow = measure_queries(bench, args, archive, packets)
        _scan(bench, archive, flow, packets)
    if args.copies > 1:
        whole = multiply(archive, args.copies)
        measure_queries(bench, args, whole, args.copies * packets)
        shutil.rmtree(whole)


def measure_queries(bench: Bench, args: Namespace, archive: Any, packets: Any) -> Any:
    """Returns the flow of the queries."""
    cpus = _two_cpus()
    bench.say(f"growth: {packets:,} packets, {len(layout.list_parts(archive))} files, two cores")
    flow = _some_flow(bench, archive, cpus)
    for number in range(args.repetitions):
        bench.spin()
        for name, sql in QUERIES.items():
            for state in ("cold", "warm"):
                if state == "cold":
                    _cold(args, archive)
                answer, took = _ask(bench, archive, sql.format(flow=flow), cpus)
                bench.add(f"{packets:,} packets, {name}, {state}", "s", answer["open"] + answer["query"])
                if number == 0 and state == "warm":
                    bench.say(
                        f"      {answer['rows']} rows; {answer}; {took.seconds:.2f} s with the start of the program"
                    )
        _commands(bench, args, archive, flow, packets, cpus)
    return flow


def _two_cpus():
    return set(sorted(os.sched_getaffinity(0))[:2])


def _commands(bench: Bench, args: Namespace, archive: Archive, flow: Any, packets: Any, cpus: Any):
    """Whole commands, from the start of Python to their end."""
    condition = f"flow_id = {flow}"
    for name, command in (
        ("`query` of the flow's rows", ["query", "--csv", f"SELECT * FROM packets WHERE {condition}"]),
        ("`fetch` of its first 1,000 packets", ["fetch", "--where", condition, "-q", "--packets", 1000, "-w", "-"]),
        ("`top`: ten talkers", ["top", "--json"]),
    ):
        for state in ("cold", "warm"):
            if state == "cold":
                _cold(args, archive)
            took = bench.run([*MODULE, command[0], "-A", archive, *command[1:]], cpus)
            bench.add(f"{packets:,} packets, {name}, {state}", "s", took.seconds)


def _scan(bench: Bench, archive: Any, flow: Any, packets: Any):
    """tcpdump through all that the archive has; the packets are kept compressed, so zstd runs beside it."""
    cpus = _two_cpus()
    answer, _ = _ask(
        bench, archive, f"SELECT ip_text(src), ip_text(dst), src_port, dst_port FROM flows WHERE flow_id = {flow}", cpus
    )
    a, b, port_a, port_b = answer["last"]
    expression = f"tcp and host {a} and host {b} and port {port_a} and port {port_b}"
    files = [part.pcapng for part in layout.list_parts(archive)]
    total = 0.0
    for path in files:
        shell = f"zstd -qdc {path} | tcpdump -nr - -w /dev/null '{expression}'"
        total += bench.run(["sh", "-c", shell], cpus).seconds
        if total > 60:
            break
    share = (files.index(path) + 1) / len(files)
    label = f"{packets:,} packets, the same flow by zstd -dc | tcpdump -r"
    bench.add(label if share == 1 else f"{label}, extrapolated from {share:.0%} of the files", "s", total / share)


def print_table(bench: Bench) -> None:
    print("| what | unit | median (least–most) |\n|---|---|---|")
    for row in bench.rows:
        print(f"| {row.name} | {row.unit} | {row.text()} |")


def machine() -> str:
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown CPU")
    return f"{model}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"


def run(args: Namespace) -> Any:
    for program in ("tshark", "capinfos", "tcpdump", "zstd"):
        if not shutil.which(program):
            raise Refused(f"{program} was not found; install it: devtools/deps.sh bench-archive")
    bench = Bench(args.cpu)
    bench.say(f"machine: {machine()}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if args.drop_caches and not os.access("/proc/sys/vm/drop_caches", os.W_OK):
            raise Refused("--drop-caches: needs root")
        try:
            for name, part in (
                ("index", index_speed),
                ("size", index_size),
                ("parallel", parallel),
                ("growth", growth),
            ):
                if name in args.only:
                    part(bench, args, folder)
        except subprocess.CalledProcessError as error:
            raise Refused(
                f"{error.cmd[0]} failed: {(error.stderr or b'').decode(errors='replace').strip()[-300:]}"
            ) from error
    bench.say(f"machine: {machine()}; free: {show.size(shutil.disk_usage(folder.anchor).free)}")
    print_table(bench)
    if args.result:
        args.result.write_text(
            json.dumps({"machine": machine(), "rows": [row.as_json() for row in bench.rows]}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit("run `ringtap archive bench`")
