# SPDX-License-Identifier: BSD-3-Clause
"""The cost of reading packet headers in a GPU, by kind of buffer memory."""

from __future__ import annotations

import ctypes
import statistics
import time
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from typing import Any

HEADER = 42  # bytes: Ethernet, IPv4, UDP
HEADROOM = 128
BLOCK = 128  # threads
LAUNCHES = 15  # the median of them counts
BURST = 32
BURSTS = 200

# One thread for each packet: reads its address, the 42 bytes there, and writes a word that depends on each of them.
PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry headers(.param .u64 addresses, .param .u64 out, .param .u32 count)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %a<16>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  ld.param.u32 %r4, [count];
  setp.ge.u32 %p, %r1, %r4;
  @%p bra done;
  ld.param.u64 %a1, [addresses];
  ld.param.u64 %a2, [out];
  cvta.to.global.u64 %a1, %a1;
  cvta.to.global.u64 %a2, %a2;
  mul.wide.u32 %a3, %r1, 8;
  add.u64 %a1, %a1, %a3;
  add.u64 %a2, %a2, %a3;
  ld.global.u64 %a4, [%a1];
  cvta.to.global.u64 %a4, %a4;
  ld.global.u64 %a5, [%a4];
  ld.global.u64 %a6, [%a4+8];
  ld.global.u64 %a7, [%a4+16];
  ld.global.u64 %a8, [%a4+24];
  ld.global.u64 %a9, [%a4+32];
  ld.global.u16 %a10, [%a4+40];
  xor.b64 %a5, %a5, %a6;
  xor.b64 %a7, %a7, %a8;
  xor.b64 %a9, %a9, %a10;
  xor.b64 %a5, %a5, %a7;
  xor.b64 %a5, %a5, %a9;
  st.global.u64 [%a2], %a5;
done:
  ret;
}
"""


def expected(buffers: Any) -> Any:
    """The words that the kernel writes; buffers: an array of bytes, one row for each packet, which begins with the header."""
    padded = numpy.zeros((len(buffers), 48), numpy.uint8)
    padded[:, :HEADER] = buffers[:, :HEADER]
    return numpy.bitwise_xor.reduce(padded.view("<u8"), axis=1)


class Pool:
    """A pool of buffers with random headers in memory of this kind."""

    def __init__(self, gpu: Any, kind: str, buffers: Any, stride: Any):
        self.gpu, self.stride = gpu, stride
        self._frames = numpy.random.default_rng(1).integers(0, 256, (buffers, stride), numpy.uint8)
        self.base, self._cpu = gpu.memory(kind, self._frames.reshape(-1))
        self._kernel = gpu.kernel(PTX, "headers")
        self._words = expected(self._frames[:, HEADROOM:])

    def write_headers(self) -> None:
        """The CPU writes to each buffer."""
        self._cpu.reshape(-1, self.stride)[:, HEADROOM : HEADROOM + HEADER] = self._frames[
            :, HEADROOM : HEADROOM + HEADER
        ]

    def read(self, offsets: Any) -> Any:
        """offsets: of successive packets' data from the beginning of the pool. Numbers for a Measurement; raises if the kernel read
        anything else than what is there."""
        count = len(offsets)
        addresses = self.gpu.upload((numpy.asarray(offsets) + self.base).astype(numpy.uint64))
        out = self.gpu.upload(numpy.zeros(count, numpy.uint64))

        def launch(first: int = 0, n: Any = count):
            self.gpu.launch(
                self._kernel,
                n,
                BLOCK,
                ctypes.c_uint64(addresses + 8 * first),
                ctypes.c_uint64(out + 8 * first),
                ctypes.c_uint32(n),
            )

        values = {}
        if self._cpu is not None:
            values["written_s"] = self._median(launch, self.write_headers) / count
        values["read_s"] = self._median(launch) / count
        self._check(out, offsets)
        values["burst_s"] = self._burst(launch, count)
        return values

    def _median(self, launch: Any, before: Any = lambda: None):
        times = []
        for _ in range(LAUNCHES):
            before()
            self.gpu.forget_cache()
            times.append(self.gpu.seconds(launch))
        return statistics.median(times[1:])

    def _burst(self, launch: Any, count: int):
        """From the launch of a kernel for one burst until the CPU knows that it has ended."""
        self.gpu.forget_cache()
        self.gpu.wait()
        times = []
        for i in range(min(BURSTS, count // BURST)):
            begin = time.perf_counter()
            launch(i * BURST, BURST)
            self.gpu.wait()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    def _check(self, out: Any, offsets: Any):
        words = numpy.zeros(len(offsets), numpy.uint64)
        self.gpu.download(out, words)
        wrong = int((words != self._words[(numpy.asarray(offsets) - HEADROOM) // self.stride]).sum())
        if wrong:
            raise RuntimeError(f"the kernel read {wrong} of {len(words)} headers wrong")
