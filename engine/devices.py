"""The memories of this machine, as llama.cpp's backends and the operating system report them."""

import ctypes
import sys
from typing import Any

import llama_cpp.llama_cpp as native
import psutil

from engine.native_log import Library
from engine.placement import Device

_GPU, _INTEGRATED = 1, 2
_HOST = "CPU"
_METAL_SHARE = 0.7
"""The share of a Mac's memory that its GPU may take, where the backend does not say."""


def devices() -> tuple[Device, ...]:
    """Main memory and every GPU that this build of llama.cpp can use. `free` is what is free now."""
    Library.start()
    host = psutil.virtual_memory()
    found = [Device(_HOST, "cpu", host.total, host.available)]
    library: Any = vars(native)["_lib"]
    parts = ("count", "get", "name", "type", "memory")
    try:
        count, get, name, kind, memory = (getattr(library, f"ggml_backend_dev_{part}") for part in parts)
    except AttributeError:
        return tuple(found)
    count.argtypes, count.restype = (), ctypes.c_size_t
    get.argtypes, get.restype = (ctypes.c_size_t,), ctypes.c_void_p
    name.argtypes, name.restype = (ctypes.c_void_p,), ctypes.c_char_p
    kind.argtypes, kind.restype = (ctypes.c_void_p,), ctypes.c_int
    size = ctypes.POINTER(ctypes.c_size_t)
    memory.argtypes, memory.restype = (ctypes.c_void_p, size, size), None
    for number in range(count()):
        device = get(number)
        if kind(device) not in (_GPU, _INTEGRATED):
            continue
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        is_shared = sys.platform == "darwin" or kind(device) == _INTEGRATED
        most = total.value or int(host.total * _METAL_SHARE)
        left = min(free.value or most, most)
        found.append(Device(name(device).decode("utf-8", "replace"), "gpu", most, left, is_shared))
    return tuple(found)
