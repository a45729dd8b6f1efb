# SPDX-License-Identifier: BSD-3-Clause
"""A debugger that has stopped threads of another process, as ptrace(2) does. They go on when it ends."""

import sys

from .proc import Proc

SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
CODE = f"""
import ctypes, os, sys
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
for tid in map(int, sys.argv[1:]):
    if ptrace({SEIZE}, tid, 0, 0) or ptrace({INTERRUPT}, tid, 0, 0):
        sys.exit(os.strerror(ctypes.get_errno()))
    os.waitpid(tid, {WALL})
print("stopped", flush=True)
sys.stdin.read()
"""


class Debugger(Proc):
    def __init__(self, tids):
        super().__init__([sys.executable, "-c", CODE, *tids])
        try:
            self.expect("^stopped$")
        except BaseException:
            self.close()
            raise
