# SPDX-License-Identifier: BSD-3-Clause
"""Makes docs/images again: `ringtap top` in a terminal, a recording in Wireshark, one explained, and incidents of
`ringtap flight`. Run as root: RINGTAP_BUILD=build devtools/pictures.py [flight|explain] (packages: devtools/deps.sh test pictures).

The application is the stock dpdk-testpmd, which forwards between two network namespaces."""

import io
import random
import re
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "e2e"), str(REPO / "lab")]

from harness import dpdk, sandbox  # noqa: E402
from harness.browser import Browser, Chromium  # noqa: E402
from harness.flight import Flight  # noqa: E402
from harness.fwd import FWD  # noqa: E402
from harness.netns import Namespace, Net  # noqa: E402
from harness.ovs import Ovs  # noqa: E402
from harness.paths import RINGTAP, Plugin  # noqa: E402
from harness.proc import Proc, check, run, until  # noqa: E402
from harness.ringtap import Recorder  # noqa: E402
from harness.tmux import Terminal  # noqa: E402
from harness.traced import RX, START, TX, Writer  # noqa: E402
from harness.two_hosts import APP, TwoHosts  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.terminal_theme import MONOKAI  # noqa: E402
from rich.text import Text  # noqa: E402

IMAGES = REPO / "docs" / "images"
COLUMNS = 112
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


def screens_of_top():
    """The ports and the threads, while packets go there and back."""
    terminal = Terminal([RINGTAP, "top"], COLUMNS, 12, {"LC_ALL": "C.UTF-8"})
    try:
        views = []
        for key, column in (("u", "PKT/C"), ("t", "CYC/PKT"), ("m", "POOL")):
            terminal.keys(key)
            terminal.shows(rf"^APP.*{column}")
            terminal.shows(rf"^{APP} ")
            clock = terminal.screen()[0]
            # Two updates later the numbers are those of a whole interval.
            for _ in range(2):
                until(lambda: terminal.screen()[0] != clock, 10, "an update")
                clock = terminal.screen()[0]
            lines = terminal.screen(styles=True)
            views.append([line for line in lines if re.sub(r"\x1b\[[0-9;]*m", "", line).strip()])
        return views
    finally:
        terminal.close()


def top(bed, out):
    echo = bed.server.start([FWD, "--plane", "packet", "--role", "echo:eth0@0", "--mac-swap", "--sleep"])
    load = bed.client.start(
        [FWD, "--plane", "packet", "--role", "generate:eth0@0", "--rate", "60k", "--poisson", "--rtt", "--burst", "8"]
    )
    try:
        load.expect("ringtap-fwd: running")
        first, *others = screens_of_top()
    finally:
        load.close()
        echo.close()
    # Title and keys are shown once.
    draw([*first, *(line for view in others for line in ["", *view[2:]])], out)


def draw(lines, out):
    """Lines of a terminal as SVG."""
    text = "\n".join(lines)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text), no_wrap=True)
    svg = console.export_svg(theme=MONOKAI, code_format=SVG, unique_id="top")
    # Room for the margin, which the numbers of rich do not have.
    svg = re.sub(
        r'viewBox="(\S+) (\S+) (\S+) (\S+)"',
        lambda m: f'viewBox="{m[1]} {m[2]} {float(m[3]) + 20:.0f} {float(m[4]) + 24:.0f}"',
        svg,
    )
    out.write_text("<!-- made by devtools/pictures.py -->\n" + re.sub(r"[ \t]+\n", "\n", svg), encoding="utf-8")


def record_http(bed, file):
    """A ping and a page over HTTP, as seen on both ports."""
    recorder = Recorder(["-i", APP], file)
    try:
        recorder.attached()
        bed.ping("-c", "1")
        bed.fetch()
        recorder.finish()
    finally:
        recorder.close()


COLUMN_FORMAT = (
    '"No.","%m","Time","%t","Port","%Cus:frame.interface_name:0:R",'
    '"Direction","%Cus:frame.packet_flags_direction:0:R","Queue",'
    '"%Cus:frame.interface_queue:0:R","Source","%s","Destination","%d",'
    '"Protocol","%p","Info","%i"'
)
RECENT = """gui.geometry_main_x: 0
gui.geometry_main_y: 0
gui.geometry_main_width: {0}
gui.geometry_main_height: {1}
gui.geometry_main_maximized: TRUE
gui.geometry_main_upper_pane: 330
gui.toolbar_main_show: FALSE
gui.byte_view_show: FALSE
gui.packet_diagram_show: FALSE
column.width: "%m", 45, "%t", 100, "%Cus:frame.interface_name", 130, \
"%Cus:frame.packet_flags_direction", 85, "%Cus:frame.interface_queue", 55, "%s", 140, "%d", 140, "%p", 70, \
"%i", 350
"""
SIZE = (1180, 700)


def wireshark(file, out):
    """tshark must read the file first; then the window of Wireshark is the picture."""
    rows = check(["tshark", "-r", file, "-T", "fields", "-e", "frame.number", "-e", "http.request.method"])
    number = next(row.split()[0] for row in rows.splitlines() if row.split()[1:] == ["GET"])
    home = file.parent
    (home / "config").mkdir()
    (home / "config" / "recent_common").write_text(RECENT.format(*SIZE))
    (home / "config" / "recent").write_text(RECENT.format(*SIZE))
    env = {
        "HOME": str(home),
        "WIRESHARK_CONFIG_DIR": str(home / "config"),
        "XDG_RUNTIME_DIR": str(home),
        "XDG_CONFIG_HOME": str(home),
    }
    server = Proc(["Xvfb", "-displayfd", "1", "-screen", "0", f"{SIZE[0]}x{SIZE[1]}x24", "-nolisten", "tcp"])
    try:
        env["DISPLAY"] = ":" + server.expect(r"^(\d+)$").group(1).decode()
        manager = Proc(["openbox"], env=env)
        window = Proc(
            [
                "wireshark",
                "-o",
                f"gui.column.format:{COLUMN_FORMAT}",
                "-o",
                "gui.update.enabled:FALSE",
                "-o",
                "privs.warn_if_elevated:FALSE",
                "-o",
                "gui.window_title:",
                "-o",
                "tcp.analyze_sequence_numbers:FALSE",
                "-g",
                number,
                "-r",
                file,
            ],
            env=env,
        )
        try:
            shoot(env, out)
        finally:
            window.close()
            manager.close()
    finally:
        server.close()


def shoot(env, out):
    def named():
        return run(["xdotool", "search", "--onlyvisible", "--name", r"\.pcapng"], env=env).stdout.split()

    window = until(named, 60, "Wireshark's window")[-1]
    check(["xdotool", "windowactivate", "--sync", window], env=env)
    taken = out.with_suffix(".full.png")
    steady(env, taken)
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


def main():
    IMAGES.mkdir(exist_ok=True)
    if sys.argv[1:] == ["explain"]:
        with tempfile.TemporaryDirectory(prefix="ringtap-pictures-", ignore_cleanup_errors=True) as folder:
            explain(Path(folder), IMAGES / "explain.png")
        return
    sandbox.enter()
    plugin = Plugin()
    try:
        if sys.argv[1:] in ([], ["flight"]):
            with tempfile.TemporaryDirectory(prefix="ringtap-pictures-", ignore_cleanup_errors=True) as folder:
                flight(plugin, Path(folder))
        if sys.argv[1:]:
            return
        with tempfile.TemporaryDirectory(prefix="ringtap-pictures-", ignore_cleanup_errors=True) as folder:
            bed = TwoHosts(plugin.path, folder, preferred=True)
            try:
                top(bed, IMAGES / "top.svg")
                file = Path(folder) / "my-app.pcapng"
                record_http(bed, file)
                wireshark(file, IMAGES / "wireshark.png")
                explain(Path(folder), IMAGES / "explain.png")
            finally:
                bed.close()
    finally:
        plugin.close()


if __name__ == "__main__":
    main()
