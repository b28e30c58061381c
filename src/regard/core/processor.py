"""What the processor is, as far as what it says of itself can be believed.

Imports nothing heavy: it comes before torch.
"""

import mmap
import os
import platform
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

_TILE_PALETTES = 0x1D
"""The leaf of CPUID that tells how large AMX's tiles are."""
_ASK = bytes.fromhex("53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3")
"""``void ask(uint32_t leaf, uint32_t subleaf, uint32_t found[4])`` around the instruction ``cpuid``, which no
library that is here anyway lets one call."""
WITHOUT_TILES = ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
"""What oneDNN, which multiplies for torch and CTranslate2, reads before its first product."""


class Processor(NamedTuple):
    name: str = ""
    maker: str = ""
    flags: frozenset[str] = frozenset()

    def multiplies_bfloat16_faster(self) -> bool:
        """Than float32. Having an instruction for it does not mean that: AMD's cores begin as many of those a
        cycle as of float32's, with twice the numbers in each; Intel's begin half as many, and only their
        tiles are faster."""
        return ("avx512_bf16" in self.flags and self.maker == "AuthenticAMD") or (
            "amx_bf16" in self.flags and not self.announces_tiles_in_vain()
        )

    def announces_tiles_in_vain(self) -> bool:
        """Some virtual machines pass on that there is AMX and forget to say how large its tiles are."""
        return "amx_tile" in self.flags and _tiles_are_nowhere_described()


@cache
def processor(described: Path = Path("/proc/cpuinfo")) -> Processor:
    """The first one of this machine."""
    try:
        first = described.read_text(encoding="utf-8", errors="replace").split("\n\n", 1)[0]
    except OSError:  # not Linux
        return Processor(platform.processor() or platform.machine())
    told = dict(_told(line) for line in first.splitlines() if ":" in line)
    name = told.get("model name") or platform.processor() or platform.machine()
    return Processor(name, told.get("vendor_id", ""), frozenset(told.get("flags", "").split()))


def leave_unusable_tiles_alone(
    environment: MutableMapping[str, str] = os.environ, present: Processor | None = None
) -> None:
    """oneDNN takes such a processor at its word, lays out tiles of no size, and the first product of bfloat16
    ends the program (SIGILL). Who has said what it may use is not overruled."""
    if (present or processor()).announces_tiles_in_vain():
        environment.setdefault(*WITHOUT_TILES)


def _told(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    return key.strip(), value.strip()


@cache
def _tiles_are_nowhere_described() -> bool:
    try:
        return not any(cpuid(_TILE_PALETTES))
    except OSError:  # no memory to run an instruction from: what is announced is believed
        return False


def cpuid(leaf: int, subleaf: int = 0) -> tuple[int, int, int, int]:
    """What an x86-64 processor answers in its registers eax, ebx, ecx and edx."""
    import ctypes

    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(_ASK)
        start = ctypes.c_char.from_buffer(page)
        try:
            word = ctypes.c_uint32
            ask = ctypes.CFUNCTYPE(None, word, word, ctypes.POINTER(word))(ctypes.addressof(start))
            found = (word * 4)()
            ask(leaf, subleaf, found)
        finally:
            del start  # a page that something points to cannot be given back
    eax, ebx, ecx, edx = found
    return eax, ebx, ecx, edx
