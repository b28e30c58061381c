"""What the machine can do: the measure that speeds are compared with."""

import os
import platform
import time
from typing import Any

import torch

from regard.core.processor import processor
from regard.engines.instructions import environment


def facts() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "system": platform.system(),
    }


def best_instructions() -> dict[str, str]:
    """What Regard tells CTranslate2 by itself, and who drives it directly must say."""
    return environment(torch.cpu.get_capabilities())


def gemm_gflops(size: int = 1024, seconds: float = 1.0) -> float:
    """Speed of a large float32 matrix product: the best of several, for what the processor can do."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty(size, size)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        torch.mm(left, right, out=out)
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best / 1e9


def _processor() -> str:
    present = processor()
    known = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")
    vector = [name for name in known if name in present.flags]
    return f"{present.name} ({', '.join(vector) or 'no AVX2'})"
