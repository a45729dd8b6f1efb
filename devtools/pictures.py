# SPDX-License-Identifier: BSD-3-Clause
"""Makes docs/images again: live commands in a terminal, recordings in Wireshark, one explained, incidents of `ringtap
flight`, and the page of `ringtap web`. Run as root: RINGTAP_BUILD=build devtools/pictures.py [NAME...], names: those of
PICTURES (packages: devtools/deps.sh test pictures).

The application is the stock dpdk-testpmd, which forwards between two network namespaces."""

import base64
import contextlib
import io
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "e2e"), str(REPO / "lab")]

from harness import dpdk, pcap, sandbox  # noqa: E402
from harness.browser import Browser, Chromium  # noqa: E402
from harness.container import Container  # noqa: E402
from harness.flight import Flight  # noqa: E402
from harness.fwd import FWD  # noqa: E402
from harness.live import LiveView, Web  # noqa: E402
from harness.netns import Namespace, Net  # noqa: E402
from harness.ovs import Ovs  # noqa: E402
from harness.paths import RINGTAP, Plugin  # noqa: E402
from harness.play import Play  # noqa: E402
from harness.proc import Proc, check, run, until  # noqa: E402
from harness.ringtap import Recorder  # noqa: E402
from harness.testpmd import Testpmd  # noqa: E402
from harness.tmux import Terminal  # noqa: E402
from harness.traced import RX, START, TX, Writer  # noqa: E402
from harness.two_hosts import APP, SERVER, TwoHosts  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.terminal_theme import MONOKAI  # noqa: E402
from rich.text import Text  # noqa: E402

IMAGES = REPO / "docs" / "images"
COLUMNS, NARROW = 112, 84
# rich's own frame of the picture names a font on another site, which GitHub does not load.
SVG = """<svg viewBox="-10 -8 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg">
<style>.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}</defs>
<rect fill="#16191d" x="-10" y="-8" width="100%" height="100%" rx="6"/>
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></svg>
"""


def screen_of_top():
    """All applications, with the last minute of each."""
    terminal = Terminal([RINGTAP, "top", APP, *OTHERS], COLUMNS, 13, {"LC_ALL": "C.UTF-8"})
    try:
        terminal.keys("a")
        terminal.shows(rf"^{APP} ")
        check(["sleep", "63"])
        clock = terminal.screen()[0]
        until(lambda: terminal.screen()[0] != clock, 10, "an update")
        return terminal.screen(styles=True)
    finally:
        terminal.close()


# Two applications beside testpmd: their rates change, and the second one sends to a queue that is too short.
OTHERS = {
    "edge": (
        "--ring",
        "a",
        "--role",
        "generate:a@0",
        "--role",
        "sink:a@0",
        "--stages",
        "20k:12s,35k:12s,8k:15s,25k:60s",
    ),
    "gateway": (
        *("--ring", "a", "--ring", "b:64", "--role", "generate:a@0", "--role", "oneway:a,b@0", "--role", "sink:b@0"),
        *("--sink-rate", "28k", "--stages", "20k:30s,40k:9s,20k:12s,34k:60s"),
    ),
}


@contextlib.contextmanager
def loaded(bed):
    """Packets there and back."""
    echo = bed.server.start([FWD, "--plane", "packet", "--role", "echo:eth0@0", "--mac-swap", "--sleep"])
    load = bed.client.start(
        [FWD, "--plane", "packet", "--role", "generate:eth0@0", "--rate", "60k", "--poisson", "--rtt", "--burst", "8"]
    )
    try:
        load.expect("ringtap-fwd: running")
        yield
    finally:
        load.close()
        echo.close()


def top(bed, out):
    with contextlib.ExitStack() as stack:
        stack.enter_context(loaded(bed))
        for name, args in OTHERS.items():
            app = stack.enter_context(contextlib.closing(Proc([FWD, "--no-huge", "--name", name, *args])))
            app.expect("ringtap-fwd: running")
        lines = screen_of_top()
    draw("\n".join(lines).rstrip().split("\n"), out)


def draw(lines, out, columns=COLUMNS):
    """Lines of a terminal as SVG."""
    text = "\n".join(lines)
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text), no_wrap=True)
    svg = console.export_svg(theme=MONOKAI, code_format=SVG, unique_id="top")
    # Room for the margin, which the numbers of rich do not have.
    svg = re.sub(
        r'viewBox="(\S+) (\S+) (\S+) (\S+)"',
        lambda m: f'viewBox="{m[1]} {m[2]} {float(m[3]) + 20:.0f} {float(m[4]) + 24:.0f}"',
        svg,
    )
    out.write_text("<!-- made by devtools/pictures.py -->\n" + re.sub(r"[ \t]+\n", "\n", svg), encoding="utf-8")


@contextlib.contextmanager
def live(*argv):
    """A live command on a high terminal."""
    terminal = Terminal([RINGTAP, *argv], NARROW, 60, {"LC_ALL": "C.UTF-8"})
    try:
        terminal.shows(f"^ringtap {argv[0]} ")
        yield terminal
    finally:
        terminal.close()


def draw_screen(terminal, out):
    # Without the line of the keys.
    lines = "\n".join(terminal.screen(styles=True)[:-1]).rstrip().split("\n")
    draw(lines, out, NARROW)


# What testpmd's icmpecho frees: all but ARP and echo requests.
MIX = f"""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for port, size in (53, 40), (53, 40), (123, 48), (4789, 900):
        s.sendto(bytes(size), ("{SERVER}", port))
    time.sleep(0.002)
"""


def drops(bed, out):
    """An application that answers pings, and drops all else."""
    bed.pmd.stop()
    bed.pmd.cmd("set fwd icmpecho")
    bed.pmd.start()
    bed.ping("-c", "1")
    load = [bed.client.start(["ping", "-q", "-i", "0.002", SERVER]), bed.client.start([sys.executable, "-c", MIX])]
    try:
        with live("drops", APP) as terminal:
            terminal.shows("By flow")
            time.sleep(6)
            draw_screen(terminal, out)
    finally:
        for it in load:
            it.close()
        bed.pmd.stop()
        bed.pmd.cmd("set fwd io")
        bed.pmd.start()


def held(plugin, out):
    """An application that keeps four mbufs a second, of one queue."""
    app = Play(plugin.path, prefix=APP)
    try:
        app.ring("a", rxq=2)
        with live("held", APP, "--older", "2s") as terminal:
            for _ in range(40):
                app.do("hold 0")
                app.rx(0, 0, n=8, len=100)
                app.do("hold 1")
                app.rx(0, 1, n=1, len=300)
                time.sleep(0.25)
            draw_screen(terminal, out)
    finally:
        app.close()


def attach(out, namespace=None):
    """The probe gets into an application that forwards, and sleeps again. In a container, it is found there first."""
    app = Testpmd(["net_ring0", "net_ring1"], prefix=APP, namespace=namespace)
    try:
        app.start("start tx_first 2")
        lines = []
        who = check(["pgrep", "-f", f"^dpdk-testpmd .*{APP} "]).strip() if namespace else APP
        for command in [*([["list"]] if namespace else []), ["attach", who], ["list", APP], ["detach", who]]:
            lines += [f"$ ringtap {' '.join(command)}", *check([RINGTAP, *command]).splitlines()]
        draw(lines, out, NARROW)
    finally:
        app.close()


def hog():
    """A program that compresses on the CPU of the polling thread."""
    code = "echo -15 >/proc/self/autogroup; exec nice -n -15 xz -9 </dev/urandom >/dev/null"
    return Proc(["taskset", "-c", "1", "sh", "-c", code])


def beside_hog(out, *argv):
    with contextlib.closing(hog()):
        text = run(["env", "LC_ALL=C.UTF-8", RINGTAP, *argv, "--duration", "3s"]).stdout
    draw(text.splitlines(), out, NARROW)


def doctor(bed, out):
    with loaded(bed):
        beside_hog(out, "doctor", APP)


def web(bed, folder, out):
    """The page of one application."""
    serve = chromium = None
    with loaded(bed):
        try:
            serve = Web()
            chromium = Chromium(folder / "profile-web")
            browser = Browser(chromium)
            view = LiveView(browser, serve, 1100, app=APP)
            view.updates(60)
            heading = "[...document.querySelectorAll('h2, h3')].find(h => h.textContent === 'Packets lost')"
            browser.screenshot(out, view.ask(f"{heading}.getBoundingClientRect().top") - 10)
        finally:
            for it in (chromium, serve):
                if it:
                    it.close()
    check(["pngquant", "--force", "--speed", "1", "--output", out, "64", out])


def zipf_frame(flow):
    """A UDP packet of 10.0.0.0/16 to one of three servers."""
    size = 400 if flow % 3 == 0 else 60
    ip = bytes([0x45, 0]) + (size - 14).to_bytes(2, "big") + bytes([0, 0, 0, 0, 64, 17, 0, 0])
    ip += bytes([10, 0, flow >> 8, flow & 255, 192, 0, 2, 1 + flow % 3])
    ports = (1024 + flow).to_bytes(2, "big") + (443 if flow % 2 == 0 else 53).to_bytes(2, "big")
    frame = bytes.fromhex("020000000001020000000002") + b"\x08\x00" + ip + ports + (size - 34).to_bytes(2, "big")
    return frame + bytes(size - len(frame))


def page_of_flows(folder, out):
    """The table of an application in ringtap web."""
    serve = chromium = None
    try:
        serve = Web(args=("--flows", "20"))
        chromium = Chromium(folder / "profile-flows")
        browser = Browser(chromium)
        view = LiveView(browser, serve, 1280, app="router")
        view.updates(8)
        top = view.ask("document.querySelector('#flows').getBoundingClientRect().top + scrollY")
        clip = {"x": 0, "y": top - 6, "width": 1280, "height": 440, "scale": 1}
        shot = browser.do("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        out.write_bytes(base64.b64decode(shot["data"]))
    finally:
        for it in (chromium, serve):
            if it:
                it.close()
    check(["pngquant", "--force", "--speed", "1", "--output", out, "64", out])


def flows(plugin, folder, out):
    """4000 flows with a Zipf distribution."""
    weights = [1 / (n + 1) for n in range(4000)]
    rng = random.Random(1)
    file = pcap.write(folder / "in.pcap", [zipf_frame(f) for f in rng.choices(range(4000), weights, k=4000)])
    vdevs = f"net_pcap0,rx_pcap={file},infinite_rx=1", "net_null0,no-rx=1"
    pmd = Testpmd(vdevs, plugin.path, prefix="router")
    terminal = None
    try:
        pmd.start()
        terminal = Terminal([RINGTAP, "top", "--view", "flows", "router"], 132, 16, {"LC_ALL": "C.UTF-8"})
        terminal.shows(r" 10\.0\.0\.0:1024 > 192\.0\.2\.1:443 UDP ")
        draw([line for line in terminal.screen(styles=True) if line.strip()], out, 132)
        page_of_flows(folder, out.with_name("flows-page.png"))
    finally:
        for it in (terminal, pmd):
            if it:
                it.close()


def record_http(bed, file, *args):
    """A ping and a page over HTTP."""
    recorder = Recorder(["-i", APP, *args], file)
    try:
        recorder.attached()
        bed.ping("-c", "1")
        bed.fetch()
        recorder.finish()
    finally:
        recorder.close()


SIZE = (1440, 700)
RECENT = """gui.geometry_main_x: 0
gui.geometry_main_y: 0
gui.geometry_main_width: {0}
gui.geometry_main_height: {1}
gui.geometry_main_maximized: TRUE
gui.geometry_main_upper_pane: {2}
gui.toolbar_main_show: FALSE
gui.byte_view_show: FALSE
gui.packet_diagram_show: FALSE
column.width: {3}
"""
WIDTHS = (
    '"%m", 50, "%t", 105, "%Cus:frame.interface_name", 130, "%Cus:frame.packet_flags_direction", 80, '
    '"%Cus:frame.interface_queue", 55, "%s", 135, "%d", 135, "%p", 70, "%L", 55, "%Cus:frame.packet_id", 100, '
    '"%Cus:ringtap.latency", 105, "%Cus:ringtap.fate", 50, "%i", 320'
)


def frame_of(file, *fields):
    """Number of the first frame that has these values: fields and values in turn."""
    wanted = list(fields[1::2])
    options = [word for name in fields[::2] for word in ("-e", name)]
    rows = check(["tshark", "-r", file, "-T", "fields", "-e", "frame.number", *options])
    return next(row.split()[0] for row in rows.splitlines() if row.split()[1:] == wanted)


def wireshark(file, out, number, *args, upper=330, expand=True):
    """The window of Wireshark with the profile 'ringtap' and the plugin, at the frame of this number."""
    home = Path(tempfile.mkdtemp(dir=file.parent))
    profile = home / "wireshark/profiles/ringtap"
    shutil.copytree(REPO / "extcap/profile", profile)
    for name in home / "wireshark/recent_common", profile / "recent":
        name.write_text(RECENT.format(*SIZE, upper, WIDTHS))
    env = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "XDG_CONFIG_HOME": str(home)}
    server = Proc(["Xvfb", "-displayfd", "1", "-screen", "0", f"{SIZE[0]}x{SIZE[1]}x24", "-nolisten", "tcp"])
    try:
        env["DISPLAY"] = ":" + server.expect(r"^(\d+)$").group(1).decode()
        manager = Proc(["openbox"], env=env)
        options = ("gui.update.enabled:FALSE", "privs.warn_if_elevated:FALSE", "gui.window_title:")
        argv = ["wireshark", "-C", "ringtap", "-X", f"lua_script:{REPO}/extcap/ringtap.lua"]
        argv += [word for option in options for word in ("-o", option)]
        window = Proc([*argv, *args, "-g", number, "-r", file], env=env)
        try:
            shoot(env, out, expand)
        finally:
            window.close()
            manager.close()
    finally:
        server.close()


OF_IDS = ",".join(f"%Cus:{field}:0:R" for field in ("frame.packet_id", "ringtap.latency", "ringtap.fate"))


def retransmissions(bed, folder, out):
    """The same page over HTTP, of both directions and of one."""
    (folder / "page").write_bytes(bytes(20000))
    parts = []
    for name, args in ("both", ()), ("rx", ("--direction", "rx")):
        file, part = folder / f"{name}.pcapng", folder / f"{name}.png"
        record_http(bed, file, *args)
        wireshark(file, part, 1, "-o", f"gui.column.hidden:{OF_IDS}", upper=SIZE[1], expand=False)
        check(["convert", part, "-crop", f"{SIZE[0]}x330+0+0", "+repage", part])
        parts.append(part)
    check(["convert", *parts, "-append", out])
    check(["pngquant", "--force", "--speed", "1", "--output", out, "32", out])


def shoot(env, out, expand):
    def named():
        return run(["xdotool", "search", "--onlyvisible", "--name", r"\.pcapng"], env=env).stdout.split()

    window = until(named, 60, "Wireshark's window")[-1]
    check(["xdotool", "windowactivate", "--sync", window], env=env)
    taken = out.with_suffix(".full.png")
    steady(env, taken)
    if expand:
        check(["xdotool", "key", "--window", window, "ctrl+Right"], env=env)  # expands the packet's details
        steady(env, taken)
    check(["convert", taken, "-strip", "-trim", "+repage", taken])
    check(["pngquant", "--force", "--speed", "1", "--output", out, "32", taken])
    taken.unlink()


def steady(env, file):
    """Takes pictures until two in a row, a second apart, are the same."""
    last = None
    for _ in range(30):
        check(["import", "-window", "root", file], env=env)
        if file.read_bytes() == last:
            return
        last = file.read_bytes()
        time.sleep(1)
    raise SystemExit("pictures: the screen does not come to rest")


def forwarded(rng, x, queue):
    """Latency in ns of a packet in a router, at x from 0 to 1 of the recording; None: it drops the packet."""
    late = rng.lognormvariate(6.8, 0.35) + (rng.randrange(20_000) if rng.random() < 0.02 else 0)
    late += 6000 if queue == 1 and 0.2 < x < 0.4 else 0
    if 0.55 < x < 0.62:
        late += rng.lognormvariate(11.9, 0.6)
        return None if rng.random() < 0.12 else int(late)
    return None if rng.random() < 0.0005 else int(late)


def explain(folder, out):
    """Explains a made recording: 60,000 packets, one every 9 us, of which some meet a congestion."""
    rng, count, now = random.Random(5), 60_000, START
    records = []
    for id in range(1, count + 1):
        now += int(rng.expovariate(1 / 9000)) + 1
        queue = min(int(rng.paretovariate(1.1)), 40) % 4
        frame = bytes(12) + b"\x88\xb5" + bytes([queue]) * rng.choice([46, 200, 700, 1300])
        records.append((now, 0, frame, RX, queue, id))
        late = forwarded(rng, id / count, queue)
        records += [(now + late, 1, frame, TX, queue, id)] if late is not None else []
    writer = Writer()
    for name in ("port0", "port1"):
        writer.interface(name)
    for ns, port, frame, direction, queue, id in sorted(records, key=lambda r: r[0]):
        writer.packet(port, ns, frame, direction, queue, id)
    html = folder / "explain.html"
    check([RINGTAP, "explain", writer.write(folder / "trace.pcapng"), "--timeout", "20ms", "--html", html])
    shoot_page(html, folder, out)


class Quiet(Namespace):
    """A namespace whose programs have CPU priority: only the disturbances of the example delay them."""

    def start(self, argv, **kwargs):
        first = 'echo -15 >/proc/self/autogroup 2>/dev/null; exec nice -n -15 "$@"'
        return super().start(["sh", "-c", first, "sh", *argv], **kwargs)


def switch(plugin):
    """Open vSwitch with two hosts that ping each other a thousand times a second. Returns the net, the switch and
    the programs."""
    dpdk.new_prefix = lambda kind: kind
    net = Net()
    net.hub.close()
    net.hub = Quiet()
    hosts = [net.add_host(f"10.0.0.{i}") for i in (1, 2)]
    ovs = Ovs(net.hub, plugin.path)
    for name, (_, port) in zip(("p0", "p1"), hosts):
        ovs.add_port(name, port)
    for host, other in ((hosts[0][0], 2), (hosts[1][0], 1)):
        until(
            lambda: run([*host.prefix, "ping", "-c", "1", "-W", "1", f"10.0.0.{other}"]).returncode == 0, 30, "a ping"
        )
    pings = [host.start(["ping", "-q", "-i", "0.001", f"10.0.0.{other}"]) for (host, _), other in zip(hosts, (2, 1))]
    return net, ovs, pings


SPIN = "import time; end = time.monotonic() + 0.08\nwhile time.monotonic() < end: pass"


def slow_pmd():
    """Takes the CPU from the PMD thread, for 80 ms. The program ends by itself: at its priority, nothing else on that
    CPU could end it."""
    check(["chrt", "-f", "10", "taskset", "-c", "1", sys.executable, "-c", SPIN])


def flap(net):
    """The link to the first host is down for 0.3 s."""
    net.hub.check(["ip", "link", "set", "to1", "down"])
    time.sleep(0.3)
    net.hub.check(["ip", "link", "set", "to1", "up"])


def shoot_page(html, folder, out, action=""):
    """The page down to its first table, after an action in it."""
    chromium = Chromium(folder / f"profile-{out.stem}")
    try:
        browser = Browser(chromium)
        browser.open(html, 1100)
        browser.ask(f"({action or 'undefined'}, 1)")
        end = browser.ask("document.querySelector('section.table').getBoundingClientRect().top")
        browser.screenshot(out, end)
    finally:
        chromium.close()
    check(["pngquant", "--force", "--speed", "1", "--output", out, "64", out])


def flight(plugin, folder):
    """The example of docs/flight.md: a slow PMD thread and a flapping link, from the recorder's start to the incidents."""
    net, ovs, pings = switch(plugin)
    kept = terminal = None
    try:
        kept = Flight(
            ovs,
            folder / "incidents",
            "--buffer",
            "64M",
            "--before",
            "1s",
            "--after",
            "1s",
            "--cooldown",
            "1h",
            "--on",
            "idle-gap > 50ms",
            "--name",
            "slow-pmd",
            "--on",
            "errors",
            "--name",
            "link",
            "--collectors",
            "all",
        )
        terminal = Terminal([RINGTAP, "flight", "top"], COLUMNS, 24, {"LC_ALL": "C.UTF-8"})
        time.sleep(4)
        # A gap after a poll with packets is none of an idle thread: rare, and not what is to be seen.
        until(lambda: kept.folders() or slow_pmd() or time.sleep(1), 30, "an incident")
        (pmd,) = kept.incidents(1)
        time.sleep(2)
        flap(net)
        link = next(i for i in kept.incidents(2) if i.folder != pmd.folder)
        terminal.shows(r"-link ")
        lines = terminal.screen(styles=True)
        # Where it is written says nothing.
        draw([re.sub(r"^/\S+", "incidents", line) for line in lines if line], IMAGES / "flight-top.svg")
        print(kept.finish())
    finally:
        for it in (terminal, kept, *pings, ovs, net):
            if it:
                it.close()
    # The switch polls, and at its priority leaves a browser no time.
    shoot_page(pmd.folder / "index.html", folder, IMAGES / "flight-slow-pmd.png")
    shoot_page(link.folder / "index.html", folder, IMAGES / "flight-link.png")


def http(bed, folder, out):
    file = folder / "my-app.pcapng"
    record_http(bed, file, "--ids")
    wireshark(file, out, frame_of(file, "http.request.method", "GET"))


# Each with a bed of two hosts and a testpmd between them, a folder, and its file.
BEDS = {
    "top.svg": lambda bed, folder, out: top(bed, out),
    "wireshark.png": http,
    "retransmissions.png": retransmissions,
    "drops.svg": lambda bed, folder, out: drops(bed, out),
    "doctor.svg": lambda bed, folder, out: doctor(bed, out),
    "gaps.svg": lambda bed, folder, out: beside_hog(out, "trace", "gaps", APP),
    "web.png": web,
}
OTHERS_THAN_BEDS = ("attach.svg", "container.svg", "explain.png", "flight", "flows.svg", "held.svg")
PICTURES = {Path(name).stem: name for name in (*BEDS, *OTHERS_THAN_BEDS)}


def make(name, plugin, folder):
    file = IMAGES / PICTURES[name]
    if name in ("attach", "container"):
        attach(file, Container() if name == "container" else None)
    elif name == "explain":
        explain(folder, file)
    elif name == "flight":
        flight(plugin, folder)
    elif name == "flows":
        flows(plugin, folder, file)
    elif name == "held":
        held(plugin, file)
    else:
        bed = TwoHosts(plugin.path, folder, preferred=True)
        try:
            BEDS[file.name](bed, folder, file)
        finally:
            bed.close()


def main():
    unknown = [name for name in sys.argv[1:] if name not in PICTURES]
    if unknown:
        raise SystemExit(f"pictures: {unknown[0]}: no such picture; choose from {', '.join(PICTURES)}")
    IMAGES.mkdir(exist_ok=True)
    sandbox.enter()
    plugin = Plugin()
    try:
        for name in sys.argv[1:] or PICTURES:
            with tempfile.TemporaryDirectory(prefix="ringtap-pictures-", ignore_cleanup_errors=True) as folder:
                make(name, plugin, Path(folder))
    finally:
        plugin.close()


if __name__ == "__main__":
    main()
