# SPDX-License-Identifier: BSD-3-Clause
"""The part of the CUDA driver API that the experiments use, by ctypes: the driver is loaded at run time, and compiles kernels that are
text (PTX)."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from typing import TYPE_CHECKING

import numpy

from .errors import Unavailable

if TYPE_CHECKING:
    from typing import Any

LIBRARY = "libcuda.so.1"
_HOST_MAPPED, _GLOBAL = 2, 1  # CU_MEMHOSTALLOC_DEVICEMAP, CU_MEM_ATTACH_GLOBAL
_CACHE = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_HUGE = 2 << 20
_MAP_HUGETLB, _MADV_NOHUGEPAGE = 0x40000, 15
DEVICE, MANAGED, PINNED, PAGES_4K, PAGES_HUGE = "gpu", "gpu-managed", "gpu-pinned", "4k", "huge"


class Gpu:
    """The first GPU. A context manager: what was allocated is freed at its end."""

    def __init__(self):
        try:
            self._cuda = ctypes.CDLL(LIBRARY)
        except OSError as e:
            raise Unavailable(f"no GPU: {e}; install NVIDIA's driver") from e
        device, context = ctypes.c_int(), ctypes.c_void_p()
        try:
            self._call("cuInit", 0)
            self._call("cuDeviceGet", ctypes.byref(device), 0)
        except RuntimeError as e:
            raise Unavailable(f"no GPU: {e}") from e
        self._device = device
        self._stack, self._areas = contextlib.ExitStack(), []
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._stack.callback(self._call, "cuDevicePrimaryCtxRelease_v2", device)
        self._call("cuCtxSetCurrent", context)
        self._events = [self._new("cuEventCreate", 0) for _ in range(2)]
        self._scratch_bytes = 4 * self._attribute(_CACHE)
        self._scratch = self._allocated(self._scratch_bytes)

    def _call(self, name: str, *arguments):
        error = getattr(self._cuda, name)(*arguments)
        if error:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorName(error, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or str(error).encode()).decode()}")

    def _new(self, name: str, *arguments):
        found = ctypes.c_void_p()
        self._call(name, ctypes.byref(found), *arguments)
        return found

    def _attribute(self, number: int):
        found = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(found), number, self._device)
        return found.value

    def name(self) -> str:
        text = ctypes.create_string_buffer(100)
        self._call("cuDeviceGetName", text, len(text), self._device)
        return text.value.decode()

    def driver(self) -> Any:
        """The greatest version of CUDA that the driver supports, such as 13000."""
        found = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(found))
        return found.value

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_) -> None:
        self._stack.close()

    # Memory

    def _allocated(self, size: Any):
        p = self._new("cuMemAlloc_v2", ctypes.c_size_t(size))
        self._stack.callback(self._call, "cuMemFree_v2", p)
        return p

    def upload(self, array: Any) -> Any:
        """An array in the GPU's own memory: its address."""
        p = self._allocated(array.nbytes)
        self._call("cuMemcpyHtoD_v2", p, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return p.value

    def download(self, address: Any, array: Any) -> None:
        self._call(
            "cuMemcpyDtoH_v2",
            array.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_void_p(address),
            ctypes.c_size_t(array.nbytes),
        )

    def memory(self, kind: str, contents: Any) -> tuple:
        """(address for the GPU, array for the CPU or None) of memory of this kind, with these contents (numpy, bytes)."""
        if kind == DEVICE:
            return self.upload(contents), None
        if kind == MANAGED:
            p = self._new("cuMemAllocManaged", ctypes.c_size_t(contents.nbytes), _GLOBAL)
            self._stack.callback(self._call, "cuMemFree_v2", p)
            host = p
        elif kind == PINNED:
            host = self._new("cuMemHostAlloc", ctypes.c_size_t(contents.nbytes), _HOST_MAPPED)
            self._stack.callback(self._call, "cuMemFreeHost", host)
            p = self._new("cuMemHostGetDevicePointer_v2", host, 0)
        else:
            host, p = self._registered(kind, contents.nbytes)
        view = numpy.ctypeslib.as_array(ctypes.cast(host, ctypes.POINTER(ctypes.c_uint8)), contents.shape)
        view[:] = contents
        return p.value, view

    def _registered(self, kind: str, size: Any):
        """Ordinary memory of the process, registered with the driver."""
        size = -(-size // _HUGE) * _HUGE
        area = mmap.mmap(
            -1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (_MAP_HUGETLB if kind == PAGES_HUGE else 0)
        )
        if kind == PAGES_4K:
            area.madvise(_MADV_NOHUGEPAGE)
        bytes_ = (ctypes.c_uint8 * size).from_buffer(area)
        self._areas.append(bytes_)  # mapped for as long as it is referred to
        host = ctypes.c_void_p(ctypes.addressof(bytes_))
        self._call("cuMemHostRegister_v2", host, ctypes.c_size_t(size), _HOST_MAPPED)
        self._stack.callback(self._call, "cuMemHostUnregister", host)
        return host, self._new("cuMemHostGetDevicePointer_v2", host, 0)

    def fill(self, address: Any, byte: Any, size: Any) -> None:
        """By the GPU."""
        self._call("cuMemsetD8_v2", ctypes.c_void_p(address), ctypes.c_ubyte(byte), ctypes.c_size_t(size))
        self.wait()

    def forget_cache(self) -> None:
        """Writes more memory than the GPU's cache holds, which then holds nothing else."""
        self._call("cuMemsetD8Async", self._scratch, ctypes.c_ubyte(0), ctypes.c_size_t(self._scratch_bytes), None)

    # Kernels

    def kernel(self, ptx: Any, name: str) -> Any:
        module, function = self._new("cuModuleLoadData", ctypes.c_char_p(ptx.encode())), ctypes.c_void_p()
        self._stack.callback(self._call, "cuModuleUnload", module)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(name.encode()))
        return function

    def launch(self, function: Any, threads: int, block: Any, *arguments) -> None:
        """arguments: ctypes objects."""
        pointers = (ctypes.c_void_p * len(arguments))(
            *(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments)
        )
        self._call("cuLaunchKernel", function, -(-threads // block), 1, 1, block, 1, 1, 0, None, pointers, None)

    def wait(self) -> None:
        self._call("cuCtxSynchronize")

    def seconds(self, work: Any) -> Any:
        """How long the GPU takes for what work() queues."""
        begin, end = self._events
        ms = ctypes.c_float()
        self._call("cuEventRecord", begin, None)
        work()
        self._call("cuEventRecord", end, None)
        self._call("cuEventSynchronize", end)
        self._call(
            "cuEventElapsedTime_v2" if hasattr(self._cuda, "cuEventElapsedTime_v2") else "cuEventElapsedTime",
            ctypes.byref(ms),
            begin,
            end,
        )
        return ms.value * 1e-3
