"""A small trained run, and the command line as a function."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from regard.apps.cli import main
from regard.apps.training import train
from tests.apps.toys import pairs, toy


class Finished(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Finished]


@pytest.fixture
def regard(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """``regard("run", folder, stdin="…")`` in this process, with its exit code and what it printed."""

    def call(*arguments: object, stdin: str | None = None) -> Finished:
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, arguments)])
        if stdin is not None:
            reading, writing = os.pipe()
            os.write(writing, stdin.encode())
            os.close(writing)
            monkeypatch.setattr(sys, "stdin", os.fdopen(reading, encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        code = exit_.value.code
        if stdin is not None:
            sys.stdin.close()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Finished(code if isinstance(code, int) else 0 if code is None else 1, printed.out, printed.err)

    return call


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer that has half learned to reverse words."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    train(toy("transformer"), pairs(160), folder, valid=pairs(24, seed=1), steps=60, seed=3)
    return folder


@pytest.fixture
def pair_file(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "".join(f"{source}\t{target}\n" for source, target in pairs(40, seed=2)), encoding="utf-8"
    )
    return path


def in_a_process(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "regard.apps", *map(str, arguments)], capture_output=True, text=True, **options
    )
