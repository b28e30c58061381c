"""With which instructions CTranslate2 computes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard.engines import instructions
from regard.engines.instructions import VARIABLE, choose_instructions, environment
from tests.engines.small import LINES, SYSTEMS, run_of

EVERYTHING = dict.fromkeys(
    ("avx512_f", "avx512_cd", "avx512_vl", "avx512_bw", "avx512_dq", "avx512_bf16"), True
)


def test_wide_registers_where_they_do_not_slow_the_processor_down() -> None:
    assert environment(EVERYTHING) == {VARIABLE: "AVX512"}
    assert environment({}) == {}
    for name in EVERYTHING:
        assert environment(EVERYTHING | {name: False}) == {}


@pytest.mark.parametrize(("said", "then"), [(None, "AVX512"), ("AVX2", "AVX2")])
def test_who_has_said_otherwise_is_not_overruled(
    said: str | None, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instructions.torch.cpu, "get_capabilities", lambda: EVERYTHING)
    monkeypatch.delenv(VARIABLE, raising=False)
    if said is not None:
        monkeypatch.setenv(VARIABLE, said)
    choose_instructions()
    assert os.environ[VARIABLE] == then
    monkeypatch.delenv(VARIABLE)


@pytest.mark.skipif(not environment(torch.cpu.get_capabilities()), reason="a processor without them")
def test_it_is_heard(tmp_path: Path) -> None:
    """CTranslate2 itself says what it uses."""
    run = run_of(SYSTEMS["rotary"](), tmp_path / "run")
    code = f"import regard; regard.load({str(run.path)!r}, engine='ctranslate2')({LINES[0]!r})"
    told = {**os.environ, "CT2_VERBOSE": "1"}
    told.pop(VARIABLE, None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=told, check=True)
    assert "Selected ISA: AVX512" in done.stderr
