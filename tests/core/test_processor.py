"""What a processor says of itself, and which of it is believed."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from regard.core import processor as this
from regard.core.processor import (
    WITHOUT_TILES,
    Processor,
    cpuid,
    leave_unusable_tiles_alone,
    processor,
)

TILES = Processor("Xeon", "GenuineIntel", frozenset({"avx512_bf16", "amx_tile", "amx_bf16"}))
X86 = platform.machine() == "x86_64" and sys.platform == "linux"


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> None:
    _describe(monkeypatch, (1, 0, 0, 0))


@pytest.fixture
def undescribed(monkeypatch: pytest.MonkeyPatch) -> None:
    _describe(monkeypatch, (0, 0, 0, 0))


def _describe(monkeypatch: pytest.MonkeyPatch, palettes: tuple[int, int, int, int]) -> None:
    monkeypatch.setattr(this, "cpuid", lambda leaf: palettes if leaf == 0x1D else pytest.fail("another leaf"))
    this._tiles_are_nowhere_described.cache_clear()


@pytest.fixture(autouse=True)
def ask_anew() -> object:
    yield
    this._tiles_are_nowhere_described.cache_clear()


def test_the_first_of_several_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(
        "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC: 9\n"
        "flags\t\t: fpu avx2\nbugs\t\t:\n\n"
        "processor\t: 1\nvendor_id\t: GenuineIntel\nmodel name\t: other\nflags\t\t: amx_tile\n\n"
    )
    assert processor(path) == Processor("AMD EPYC: 9", "AuthenticAMD", frozenset({"fpu", "avx2"}))


def test_where_nothing_is_described_nothing_is_assumed(tmp_path: Path) -> None:
    found = processor(tmp_path / "missing")
    assert found.name
    assert not found.flags
    assert not found.multiplies_bfloat16_faster()
    assert not found.announces_tiles_in_vain()


@pytest.mark.usefixtures("described")
@pytest.mark.parametrize(
    ("maker", "flags", "faster"),
    [
        ("AuthenticAMD", {"avx512_bf16"}, True),
        ("AuthenticAMD", {"avx512f"}, False),
        ("GenuineIntel", {"avx512_bf16"}, False),
        ("GenuineIntel", {"avx512_bf16", "amx_tile", "amx_bf16"}, True),
        ("GenuineIntel", {"avx512_bf16", "amx_tile", "amx_int8"}, False),
    ],
)
def test_having_an_instruction_does_not_make_it_fast(maker: str, flags: set[str], faster: bool) -> None:
    assert Processor("", maker, frozenset(flags)).multiplies_bfloat16_faster() is faster


@pytest.mark.usefixtures("described")
def test_described_tiles_are_used() -> None:
    environment: dict[str, str] = {}
    leave_unusable_tiles_alone(environment, TILES)
    assert not environment


@pytest.mark.usefixtures("undescribed")
def test_tiles_of_no_size_are_left_alone() -> None:
    environment: dict[str, str] = {}
    leave_unusable_tiles_alone(environment, TILES)
    assert environment == dict([WITHOUT_TILES])
    assert not TILES.multiplies_bfloat16_faster()


@pytest.mark.usefixtures("undescribed")
def test_who_has_said_otherwise_is_not_overruled() -> None:
    environment = {WITHOUT_TILES[0]: "AVX2"}
    leave_unusable_tiles_alone(environment, TILES)
    assert environment == {WITHOUT_TILES[0]: "AVX2"}


@pytest.mark.usefixtures("undescribed")
def test_a_processor_without_tiles_is_not_asked_for_their_size() -> None:
    environment: dict[str, str] = {}
    leave_unusable_tiles_alone(environment, Processor("EPYC", "AuthenticAMD", frozenset({"avx512_bf16"})))
    assert not environment


def test_where_no_memory_may_be_run_what_is_announced_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(leaf: int) -> tuple[int, int, int, int]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(this, "cpuid", refused)
    this._tiles_are_nowhere_described.cache_clear()
    assert not TILES.announces_tiles_in_vain()


@pytest.mark.skipif(not X86, reason="an instruction of x86-64")
def test_the_instruction_tells_the_same_as_the_system() -> None:
    """Leaf 0 spells the maker over three registers; bit 5 of leaf 7's ebx is AVX2."""
    _, ebx, ecx, edx = cpuid(0)
    assert b"".join(word.to_bytes(4, "little") for word in (ebx, edx, ecx)).decode() == processor().maker
    assert bool(cpuid(7)[1] >> 5 & 1) is ("avx2" in processor().flags)
    assert cpuid(7, 0) == cpuid(7) != cpuid(7, 1)


def test_it_is_said_before_torch_computes() -> None:
    """In a fresh process whose processor announces tiles in vain."""
    code = (
        "import os, sys; from regard.core import processor as this; from pathlib import Path;"
        "assert 'torch' not in sys.modules;"
        f"this.processor = lambda: this.{TILES!r}; this._tiles_are_nowhere_described = lambda: True;"
        "sys.modules.pop('regard'); import regard;"
        f"print(os.environ[{WITHOUT_TILES[0]!r}]);"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == WITHOUT_TILES[1]
