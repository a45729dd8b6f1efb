# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: starts programs for the host. Each request and each answer is a line of JSON on a
virtio port:

    {"do": "run", "command": [...], "timeout": s}              {"code": n, "out": "...", "err": "..."}
    {"do": "start", "name": n, "command": [...]}               {"pid": n}: its output goes into work/NAME.out
    {"do": "write", "name": n, "text": "..."}                  {}: to its standard input
    {"do": "signal", "name": n, "number": n}                   {}
    {"do": "wait", "name": n, "timeout": s}                    {"code": n}
    {"do": "bind", "address": "0000:00:05.0"}                  {"was": driver or null}: to vfio-pci
"""

import json
import os
import pty
import socket
import subprocess
import sys
import threading
from pathlib import Path

NETLINK_KOBJECT_UEVENT = 15  # <linux/netlink.h>
WORK = Path("/run/ringtap-guest")
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "COLUMNS": "0"}
started = {}


def run(request):
    done = subprocess.run(
        request["command"],
        capture_output=True,
        text=True,
        errors="replace",
        env=ENV,
        cwd=WORK,
        timeout=request.get("timeout", 60),
        stdin=subprocess.DEVNULL,
    )
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def copy(source, path):
    with open(path, "wb", buffering=0) as out:
        while True:
            try:
                out.write(os.read(source, 65536))
            except OSError:  # the program has ended
                return


def start(request):
    """On a terminal: programs then print without buffering."""
    name = request["name"]
    master, slave = pty.openpty()
    proc = subprocess.Popen(
        request["command"], stdin=slave, stdout=slave, stderr=slave, env=ENV, cwd=WORK, start_new_session=True
    )
    os.close(slave)
    started[name] = proc, master
    threading.Thread(target=copy, args=(master, WORK / f"{name}.out"), daemon=True).start()
    return {"pid": proc.pid}


def write(request):
    os.write(started[request["name"]][1], request["text"].encode())
    return {}


def signal(request):
    started[request["name"]][0].send_signal(request["number"])
    return {}


def wait(request):
    return {"code": started[request["name"]][0].wait(request.get("timeout", 60))}


def bind(request):
    device = Path("/sys/bus/pci/devices") / request["address"]
    driver = device / "driver"
    was = driver.resolve().name if driver.exists() else None
    if was:
        (driver / "unbind").write_text(request["address"])
    (device / "driver_override").write_text("vfio-pci")
    Path("/sys/bus/pci/drivers_probe").write_text(request["address"])
    if not (device / "iommu_group").exists():
        raise OSError(f"{request['address']} has no IOMMU group")
    return {"was": was}


DEEDS = {"run": run, "start": start, "write": write, "signal": signal, "wait": wait, "bind": bind}


def port():
    """Its path: there is no udev that would make links. The device reports its ports one by one."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_KOBJECT_UEVENT) as events:
        events.bind((0, 1))
        events.settimeout(600)
        while True:
            for name in Path("/sys/class/virtio-ports").iterdir():
                if (name / "name").exists() and (name / "name").read_text().strip() == "ringtap":
                    return f"/dev/{name.name}"
            try:
                events.recv(65536)
            except TimeoutError:
                sys.exit("agent: the virtual machine has no port for it")


def main():
    fd = os.open(port(), os.O_RDWR)
    with os.fdopen(fd, "rb", buffering=0) as requests:
        os.write(fd, b'{"ready": true}\n')
        pending = b""
        while True:
            pending += requests.read(65536) or b""
            while b"\n" in pending:
                line, pending = pending.split(b"\n", 1)
                request = json.loads(line)
                try:
                    answer = DEEDS[request["do"]](request)
                except Exception as e:  # the host says what it means
                    answer = {"error": f"{type(e).__name__}: {e}"}
                os.write(fd, json.dumps(answer).encode() + b"\n")


main()
