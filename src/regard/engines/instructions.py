"""With which instructions CTranslate2 computes what is no product: norms, softmaxes, searches."""

import os
from collections.abc import Mapping
from typing import Any

import torch

VARIABLE = "CT2_FORCE_CPU_ISA"
_WIDE = ("avx512_f", "avx512_cd", "avx512_vl", "avx512_bw", "avx512_dq")
_LATER = "avx512_bf16"
"""What only processors have that do not become slower as soon as they use wide registers."""


def environment(has: Mapping[str, Any]) -> dict[str, str]:
    """What it has to be told for the fastest: by itself it takes no registers of 512 bits."""
    return {VARIABLE: "AVX512"} if all(has.get(name) for name in (*_WIDE, _LATER)) else {}


def choose_instructions() -> None:
    """Heard if it is before the first model is loaded. Who has said otherwise is not overruled."""
    for name, value in environment(torch.cpu.get_capabilities()).items():
        os.environ.setdefault(name, value)
