"""What this machine has, and whether anything is in the way."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import time
from typing import NamedTuple

import torch


class Finding(NamedTuple):
    what: str
    value: str
    good: bool = True


def examine() -> list[Finding]:
    free = shutil.disk_usage(".").free / 2**30
    packages = ("regard", "numpy", "tokenizers", "safetensors", "pydantic", "sacrebleu")
    return [
        Finding("python", platform.python_version()),
        Finding("platform", platform.platform()),
        Finding("torch", f"{torch.__version__}, {torch.get_num_threads()} threads"),
        *(Finding(name, importlib.metadata.version(name)) for name in packages),
        Finding("cpu", f"{os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}"),
        Finding("matrix product 1024³, float32", f"{gemm_speed():.0f} GFLOPS"),
        Finding("gpu", torch.cuda.get_device_name() if torch.cuda.is_available() else "none"),
        Finding("parquet", *_extra("pyarrow", "data")),
        Finding("free disk here", f"{free:.1f} GiB", free > 1),
    ]


def gemm_speed(size: int = 1024, repeats: int = 8) -> float:
    """GFLOPS of one float32 matrix product: the best of a few."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best / 1e9


def _extra(module: str, extra: str) -> tuple[str, bool]:
    if importlib.util.find_spec(module) is None:
        return f'not installed: pip install "regard[{extra}]"', False
    return importlib.metadata.version(module), True
