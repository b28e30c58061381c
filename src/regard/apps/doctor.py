"""What this machine has, and whether anything is in the way."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import time
from typing import NamedTuple

import torch

from regard.core.processor import WITHOUT_TILES, processor


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
        _products_of_bfloat16(),
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


def _products_of_bfloat16() -> Finding:
    what, present = "products of bfloat16", processor()
    if present.announces_tiles_in_vain():
        name, value = WITHOUT_TILES
        avoided = f"{name}={os.environ.get(name, value)}"
        return Finding(what, f"AMX is announced without the size of its tiles; not used ({avoided})", False)
    faster = present.multiplies_bfloat16_faster()
    return Finding(what, "faster: training uses them" if faster else "not faster: training does without")


def _extra(module: str, extra: str) -> tuple[str, bool]:
    if importlib.util.find_spec(module) is None:
        return f'not installed: pip install "regard[{extra}]"', False
    return importlib.metadata.version(module), True
