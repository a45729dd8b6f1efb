#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's report about memory of a GPU, or shared with one, and the ways to read it by CPU: JSON. Each way is tried
in a process of its own, which a read of device memory ends.
usage: memory_kinds.py OUTPUT | memory_kinds.py --hold   (keeps the GPU in use until it is killed)"""

import ctypes
import json
import os
import re
import signal
import sys

import numpy
from ringtap_lab.tools import cuda

BYTES = 4 << 20
KINDS = (cuda.DEVICE, cuda.MANAGED, cuda.PINNED, cuda.PAGES_4K, cuda.PAGES_HUGE)
_libc = ctypes.CDLL(None, use_errno=True)


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def _mapping(address):
    """The lines of /proc/self/smaps on it that tell mappings apart."""
    found, inside = [], False
    with open("/proc/self/smaps", encoding="utf-8") as f:
        for line in f:
            head = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
            if head:
                inside = int(head[1], 16) <= address < int(head[2], 16)
            if inside and (head or line.startswith(("Size", "KernelPageSize", "Rss", "VmFlags"))):
                found.append(" ".join(line.split()))
    return found


def _vm_readv(address):
    byte = ctypes.create_string_buffer(1)
    to, source = _Vector(ctypes.addressof(byte), 1), _Vector(address, 1)
    if _libc.process_vm_readv(os.getpid(), ctypes.byref(to), 1, ctypes.byref(source), 1, 0) == 1:
        return byte.raw[0]
    return os.strerror(ctypes.get_errno())


def _write(address):
    """write() of a byte there: the kernel reads it as the program would."""
    reader, writer = os.pipe()
    if _libc.write(writer, ctypes.c_void_p(address), 1) == 1:
        return os.read(reader, 1)[0]
    return os.strerror(ctypes.get_errno())


def _load(address):
    return ctypes.c_ubyte.from_address(address).value


def _try(kind, where, read):
    """In a child: {"got": …} or {"signal": …}."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            with cuda.Gpu() as gpu:
                contents = numpy.full(BYTES, 0x5A, numpy.uint8)
                address, _ = gpu.memory(kind, contents)
                if where == "gpu" and kind == cuda.MANAGED:
                    gpu.fill(address, 0x5A, BYTES)
                os.write(writer, json.dumps({"mapping": _mapping(address), "got": read(address)}).encode())
        except BaseException as e:
            os.write(writer, json.dumps({"error": f"{type(e).__name__}: {e}"}).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(pid, 0)
    text = os.read(reader, 1 << 16)
    os.close(reader)
    if os.WIFSIGNALED(status):
        return {"signal": signal.Signals(os.WTERMSIG(status)).name}
    return json.loads(text)


def main():
    if sys.argv[1] == "--hold":
        with cuda.Gpu():
            signal.pause()
    with open(sys.argv[1], "w", encoding="ascii") as f:
        for kind in KINDS:
            for where in ("cpu", "gpu") if kind == cuda.MANAGED else ("cpu",):
                for read in (_vm_readv, _write, _load):
                    line = json.dumps(
                        {"kind": kind, "written_by": where, "way": read.__name__[1:], **_try(kind, where, read)}
                    )
                    print(line, flush=True)
                    f.write(line + "\n")


if __name__ == "__main__":
    main()
