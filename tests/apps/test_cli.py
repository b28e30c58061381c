"""The command line: what it prints, where, and with which exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import regard as package
from tests.apps.conftest import Command, in_a_process
from tests.apps.toys import pairs, toy


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['regard', '--help']\n"
        "from regard.apps.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'torch', 'numpy', 'tokenizers', 'sacrebleu', 'pydantic'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout
    for command in (
        "train",
        "run",
        "eval",
        "score",
        "recipes",
        "diff",
        "look",
        "import",
        "export",
        "doctor",
        "demo",
    ):
        assert command in done.stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, regard; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_every_public_name_is_there() -> None:
    assert all(getattr(package, name) is not None for name in package.__all__)


def test_recipes_lists_all_and_shows_one(regard: Command) -> None:
    listed = regard("recipes")
    assert listed.code == 0
    assert "bahdanau" in listed.out
    shown = regard("recipes", "luong", "--json")
    assert json.loads(shown.out) == package.recipe("luong").to_dict()


def test_run_answers_in_order_with_empty_lines_kept(regard: Command, run_folder: Path) -> None:
    done = regard("run", run_folder, stdin="abc\n\nfed\nabcdef\n")
    lines = done.out.split("\n")
    assert done.code == 0
    assert len(lines) == 5
    assert lines[1] == ""
    assert regard("run", run_folder, stdin="fed\n").out.strip() == lines[2]


def test_run_json_says_everything(regard: Command, run_folder: Path) -> None:
    (answer,) = regard("run", run_folder, "--json", "--best", "3", stdin="abcd\n").json
    assert answer["source"] == "abcd"
    assert len(answer["n_best"]) == 3
    assert answer["text"] == answer["n_best"][0]["text"]
    assert sum(answer["token_log_probs"]) == pytest.approx(answer["log_prob"], abs=1e-4)
    rows, columns = len(answer["pieces"]), len(answer["source_pieces"])
    assert len(answer["alignment"]) == rows
    assert {len(row) for row in answer["alignment"]} == {columns}
    assert all(sum(row) == pytest.approx(1, abs=1e-2) for row in answer["alignment"])


def test_searches_and_constraints_can_be_asked_for(regard: Command, run_folder: Path) -> None:
    greedy = regard("run", run_folder, "--greedy", stdin="abcde\n").out
    assert regard("run", run_folder, "--beam", "1", stdin="abcde\n").out == greedy
    assert regard("run", run_folder, "--prefix", "cc", stdin="abcde\n").out.startswith("cc")
    assert "d" not in regard("run", run_folder, "--forbid", "d", stdin="abcde\n").out
    assert "ff" in regard("run", run_folder, "--require", "ff", stdin="abcde\n").out
    sampled = [
        regard("run", run_folder, "--sample", "--set", f"search.seed={n}", stdin="abc\n").out
        for n in (1, 1, 2)
    ]
    assert sampled[0] == sampled[1]
    tree = regard("run", run_folder, "--tree", stdin="ab\n").out
    assert "■" in tree


def test_score_agrees_with_run(regard: Command, run_folder: Path, tmp_path: Path) -> None:
    (answer,) = regard("run", run_folder, "--json", stdin="abcd\n").json
    given = tmp_path / "given.tsv"
    given.write_text(f"abcd\t{answer['text']}\n")
    (scored,) = regard("score", run_folder, "--data", given, "--json").json
    assert scored["log_prob"] == pytest.approx(answer["log_prob"], abs=1e-4)
    assert float(regard("score", run_folder, "--data", given).out) == pytest.approx(
        scored["log_prob"], abs=1e-5
    )


def test_eval_prints_one_object(regard: Command, run_folder: Path, pair_file: Path) -> None:
    (printed,) = regard("eval", run_folder, "--data", pair_file, "--json").json
    assert set(printed) == {"metric", "value", "scores", "signature", "examples", "engine"}
    assert printed["scores"] == {"exact": printed["value"]}
    assert printed["metric"] == "exact"
    assert printed["examples"] == 40
    (bleu,) = regard("eval", run_folder, "--data", pair_file, "--metric", "bleu", "--json").json
    assert "tok:13a" in str(bleu["signature"])


def test_diff_shows_what_differs(regard: Command, run_folder: Path) -> None:
    assert regard("diff", "transformer", "transformer").out == ""
    rows = regard("diff", "transformer_tiny", "transformer", "--json").json[0]
    assert {"field": "model.encoder.embedding.width", "left": 128, "right": 256} in rows
    assert "data.source.unit" in regard("diff", "transformer", run_folder).out


def test_look_writes_one_page(regard: Command, run_folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "look.html"
    done = regard("look", run_folder, "--text", "abc", "--text", "fed", "--html", page)
    assert done.out.strip() == str(page)
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_doctor_reports(regard: Command) -> None:
    (found,) = regard("doctor", "--json").json
    assert "torch" in found
    assert "GFLOPS" in str(found["matrix product 1024³, float32"])


def test_doctor_says_when_a_virtual_machine_promises_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.apps import doctor
    from regard.core.processor import Processor

    for in_vain, told in ((True, "ONEDNN_MAX_CPU_ISA="), (False, "faster")):
        monkeypatch.setattr(Processor, "announces_tiles_in_vain", lambda _, in_vain=in_vain: in_vain)
        found = {finding.what: finding for finding in doctor.examine()}["products of bfloat16"]
        assert told in found.value
        assert found.good is not in_vain


def test_train_from_a_file_then_resume_then_finished(
    regard: Command, pair_file: Path, tmp_path: Path
) -> None:
    spec, out = tmp_path / "spec.yaml", tmp_path / "run"
    spec.write_text(toy("bahdanau").to_yaml())
    first = regard("train", spec, "--data", pair_file, "--out", out, "--steps", "4", "--json")
    assert first.code == 0
    assert first.json[0]["step"] == 4
    assert "40" in first.err or "39" in first.err  # the data is announced
    more = regard("train", spec, "--data", pair_file, "--out", out, "--steps", "6", "--quiet", "--json")
    assert more.json[0]["step"] == 6
    assert more.err == ""
    again = regard("train", spec, "--data", pair_file, "--out", out, "--steps", "6", "--quiet", "--json")
    assert again.json[0]["step"] == 6


def test_reads_pairs_from_standard_input(regard: Command, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(toy("seq2seq").to_yaml())
    text = "".join(f"{source}\t{target}\n" for source, target in pairs(60))
    done = regard("train", spec, "--data", "-", "--out", tmp_path / "run", "--steps", "2", "-q", stdin=text)
    assert done.code == 0


BAD = {
    "unknown recipe": (["train", "transfomer", "--data", "{pairs}", "--out", "{out}"], "transformer"),
    "unknown key": (
        ["train", "luong", "--data", "{pairs}", "--out", "{out}", "--set", "training.stepz=3"],
        "training.steps",
    ),
    "wrong type": (
        ["train", "luong", "--data", "{pairs}", "--out", "{out}", "--set", "training.clip=much"],
        "training.clip: got 'much'",
    ),
    "impossible value": (
        ["train", "luong", "--data", "{pairs}", "--out", "{out}", "--set", "objective.smoothing=1.5"],
        "objective.smoothing: got 1.5",
    ),
    "impossible heads": (
        ["train", "transformer", "--data", "{pairs}", "--out", "{out}", "--set",
         "model.encoder.stack.blocks.0.mixers.0.heads=5"],
        "256 does not split into 5 heads",
    ),
    "missing file": (["train", "luong", "--data", "{pairs}x", "--out", "{out}"], "pairs.tsv"),
    "empty file": (["train", "luong", "--data", "{empty}", "--out", "{out}"], "empty.tsv"),
    "three columns": (["train", "luong", "--data", "{wide}", "--out", "{out}"], "wide.tsv:2"),
    "bad utf-8": (["train", "luong", "--data", "{latin}", "--out", "{out}"], "latin.tsv:2"),
    "out is no run": (["train", "luong", "--data", "{pairs}", "--out", "{here}"], "not"),
    "no run": (["run", "{here}", "{pairs}"], "not a run"),
    "unknown metric": (["eval", "{run}", "--data", "{pairs}", "--metric", "blue"], "bleu"),
    "set on a trained run": (["run", "{run}", "{pairs}", "--set", "model.tie=none"], "search."),
    "two searches": (["run", "{run}", "{pairs}", "--greedy", "--beam", "3"], "exclude"),
    "no such device": (["run", "{run}", "{pairs}", "--device", "quantum"], "quantum"),
    "no such option": (["run", "{run}", "--bem", "3"], "--beam"),
    "missing option": (["train", "luong", "--out", "{out}"], "--data"),
    "texts and targets": (
        ["look", "{run}", "--text", "a", "--text", "b", "--target", "c", "--html", "{out}"],
        "2 --text but 1 --target",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_message(
    name: str, regard: Command, run_folder: Path, pair_file: Path, tmp_path: Path
) -> None:
    empty, wide, latin = (tmp_path / f"{stem}.tsv" for stem in ("empty", "wide", "latin"))
    empty.write_text("")
    wide.write_text("a\tb\na\tb\tc\n")
    latin.write_bytes(b"a\tb\ncaf\xe9\tb\n")
    out = tmp_path / "out"
    places = {"pairs": pair_file, "out": out, "empty": empty, "wide": wide, "latin": latin}
    places |= {"here": tmp_path, "run": run_folder}
    arguments, expected = BAD[name]
    before = sorted(tmp_path.iterdir())
    done = regard(*(argument.format(**places) for argument in arguments))
    assert done.code == 2
    assert expected in done.err
    assert done.out == ""
    assert sorted(tmp_path.iterdir()) == before  # nothing made, nothing lost


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "regard.json"])
def test_a_single_flipped_bit_is_refused_by_name(
    name: str, regard: Command, run_folder: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in run_folder.iterdir():
        if file.is_file():
            (damaged / file.name).write_bytes(file.read_bytes())
    target = next(path for path in damaged.iterdir() if path.name.endswith(name))
    content = bytearray(target.read_bytes())
    content[len(content) // 2] ^= 1
    target.write_bytes(content)
    done = regard("run", damaged, stdin="abc\n")
    assert done.code == 2
    assert target.name in done.err


def test_too_long_inputs_are_named_and_cut_only_when_asked(regard: Command, tmp_path: Path) -> None:
    from regard.apps.training import train

    out = tmp_path / "run"
    spec = toy("convs2s", "model.encoder.embedding.positions.longest=9", "data.longest=9")
    train(spec, pairs(60), out, valid=pairs(10, seed=1), steps=2)
    done = regard("run", out, stdin="abc\nabcdefabcdef\n")
    assert done.code == 2
    assert "line 2" in done.err
    assert "13 tokens" in done.err
    assert "9 positions" in done.err
    assert len(regard("run", out, "--truncate", stdin="abc\nabcdefabcdef\n").out.splitlines()) == 2


def test_a_reader_that_leaves_is_no_error(run_folder: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("abc\n" * 3000)
    command = f"{sys.executable} -m regard.apps run {run_folder} {many} | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env={**os.environ})
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr


def test_module_can_be_run() -> None:
    assert "train" in in_a_process("--help").stdout
