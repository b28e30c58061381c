"""Long inputs into a file: kill -9 at any moment, go on, and nothing is missing, doubled or different."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.apps import bulk
from tests.apps.conftest import Command
from tests.apps.toys import pairs


@pytest.fixture
def many(tmp_path: Path) -> Path:
    file = tmp_path / "many.txt"
    file.write_text("".join(f"{word}\n" for word, _ in pairs(250, seed=4)))
    return file


def test_a_file_of_answers_is_what_is_printed(
    regard: Command, run_folder: Path, many: Path, tmp_path: Path
) -> None:
    printed = regard("run", run_folder, many).out
    out = tmp_path / "deep" / "answers.txt"
    done = regard("run", run_folder, many, "--out", out)
    assert done.out == ""
    assert out.read_text() == printed
    assert "250 lines" in done.err
    assert sorted(path.name for path in out.parent.iterdir()) == ["answers.txt"]
    assert "complete already" in regard("run", run_folder, many, "--out", out, "--resume").err


def test_a_stopped_one_goes_on_and_no_other_does(
    regard: Command, run_folder: Path, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "WINDOW", 50)
    sampled = ("--sample", "--seed", 5, "--set", "search.temperature=3")
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert regard("run", run_folder, many, *sampled, "--out", whole).code == 0

    windows, left = bulk.Bulk._written, 3

    def until_the_fourth(self: bulk.Bulk, part: object, lines: int) -> None:
        nonlocal left
        if left == 0:
            part.write(b"torn")  # type: ignore[attr-defined]
            part.flush()  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        left -= 1
        windows(self, part, lines)  # type: ignore[arg-type]

    monkeypatch.setattr(bulk.Bulk, "_written", until_the_fourth)
    assert regard("run", run_folder, many, *sampled, "--out", out).code != 0
    monkeypatch.setattr(bulk.Bulk, "_written", windows)
    assert not out.exists()
    assert (tmp_path / "out.part").read_bytes().endswith(b"torn")
    again = regard("run", run_folder, many, *sampled, "--out", out)
    assert (again.code, "stopped after 150 lines" in again.err) == (2, True)
    other = regard("run", run_folder, many, "--greedy", "--out", out, "--resume")
    assert (other.code, "search was" in other.err) == (2, True)
    rounded = regard("run", run_folder, many, *sampled, "--precision", "int8", "--out", out, "--resume")
    assert (rounded.code, "precision was" in rounded.err) == (2, True)
    assert regard("run", run_folder, many, *sampled, "--out", out, "--resume").code == 0
    assert out.read_bytes() == whole.read_bytes()
    assert len(set(whole.read_text().splitlines())) > 60


def killed(run_folder: Path, file: Path, folder: Path, kills: int, seed: int) -> None:
    """The real command, killed when more and more is written."""
    whole, out = folder / "whole", folder / "out"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "regard.apps",
        "run",
        str(run_folder),
        str(file),
        "--engine",
        "torch",
        "--out",
    ]
    subprocess.run([*command, str(whole)], check=True, env=environment, capture_output=True)
    rng, journal = random.Random(seed), folder / "out.journal"
    for _ in range(kills):
        before = journal.read_bytes() if journal.exists() else b""
        with subprocess.Popen(
            [*command, str(out), "--resume"], env=environment, stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and (not journal.exists() or journal.read_bytes() == before):
                time.sleep(0.001)
            time.sleep(rng.random() * 0.05)
            process.send_signal(signal.SIGKILL)
    assert not out.exists(), "all kills must fall into the answering"
    subprocess.run([*command, str(out), "--resume"], check=True, env=environment, capture_output=True)
    assert out.read_bytes() == whole.read_bytes()
    assert whole.read_bytes().count(b"\n") == file.read_bytes().count(b"\n")


def long_file(folder: Path, lines: int) -> Path:
    file = folder / "long.txt"
    file.write_text("".join(f"{word}\n" for word, _ in pairs(lines, seed=6, longest=4)))
    return file


def test_killed_once(run_folder: Path, tmp_path: Path) -> None:
    killed(run_folder, long_file(tmp_path, 8000), tmp_path, kills=1, seed=1)


@pytest.mark.slow
def test_killed_ten_times(run_folder: Path, tmp_path: Path) -> None:
    killed(run_folder, long_file(tmp_path, 40_000), tmp_path, kills=10, seed=2)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(run_folder: Path, tmp_path: Path) -> None:
    """What a process needs at most, for a file and for one ten times as long."""

    def peak(lines: int) -> int:
        script = (
            "import resource, sys; from regard.apps.cli import main\n"
            "try: main()\nexcept SystemExit: pass\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        arguments = [
            "run",
            str(run_folder),
            str(long_file(tmp_path, lines)),
            "--out",
            str(tmp_path / f"o{lines}"),
        ]
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
        )
        return int(done.stdout.split()[-1])

    assert peak(60_000) < peak(6_000) * 1.1


def test_documents_keep_what_is_not_text(regard: Command, run_folder: Path, tmp_path: Path) -> None:
    from regard.apps.session import load

    file, out = tmp_path / "page.md", tmp_path / "out.md"
    file.write_text("# abc\n\n- *de* `code`\n")
    abc, de = load(run_folder)(["abc", "de"])
    assert regard("run", run_folder, file).out == f"# {abc}\n\n- *{de}* `code`\n"
    assert regard("run", run_folder, file, "--out", out).code == 0
    assert out.read_text() == f"# {abc}\n\n- *{de}* `code`\n"
    assert len(regard("run", run_folder, file, "--format", "lines").out.splitlines()) == 3
    assert regard("run", run_folder, "--format", "html", stdin="<b>abc</b>").out == f"<b>{abc}</b>"
    assert regard("run", run_folder, file, "--json").code == 2
    broken = tmp_path / "broken.xliff"
    broken.write_text("<xliff")
    done = regard("run", run_folder, broken)
    assert (done.code, f"{broken}: " in done.err) == (2, True)


def test_progress_tells_rate_and_what_is_left(
    many: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("regard.apps.bulk.time.monotonic", lambda: now)
    lines = many.read_text().splitlines()
    with bulk.Progress(many) as progress:
        progress.skip(lines[:50])
        now += 20
        progress.advance(lines[50:150])
    assert "100 lines, 5.0 a second" in capsys.readouterr().err
    assert 19 <= int(progress.told().split(", ")[-1].split()[0]) <= 21
    with bulk.Progress(Path("-")) as progress:
        now += 1
        progress.advance(lines[:10])
        assert "left" not in progress.told()
