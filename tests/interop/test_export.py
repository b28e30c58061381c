"""A run as transformers loads it: the same ids, logits and greedy text; and n-grams as a file."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.apps.exchange import arpa_names, export_run, import_run
from regard.apps.session import Run, load
from regard.apps.training import train
from regard.core.errors import RegardError, RunError, UsageError
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.search.greedy import GreedySpec
from tests.apps.conftest import Command
from tests.apps.toys import pairs, toy
from tests.interop import folders
from tests.interop.test_import import assert_same_logits

GREEDY = GreedySpec(longest_ratio=0.0, longest_extra=9)
PROMPTS = ["The quick", "A language", "", "the lazy dog,", "1979 and", " x"]
UNITS = {
    "byte_bpe": "data.tokenizer={unit: byte_bpe, size: 320}",
    "character": "data.tokenizer={unit: character, size: 90}",
    "bpe": "data.tokenizer={unit: bpe, size: 120}",
    "wordpiece": "data.tokenizer={unit: wordpiece, size: 160}",
    "word": "data.tokenizer={unit: word, size: 60}",
}


@pytest.fixture(scope="module", params=UNITS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A toy that has learned a little, so that what is likely differs from place to place."""
    out = tmp_path_factory.mktemp("export") / "run"
    spec = toy("gpt", UNITS[request.param], "data.window=20", "model.decoder.embedding.positions.longest=64")
    train(spec, folders.SENTENCES * 4, out, steps=40, seed=1)
    return load(out)


@pytest.fixture(scope="module")
def exported(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "theirs"
    export_run(run.path, out, "hf")
    return out


def test_ids_and_texts_are_the_same_to_auto_tokenizer(run: Run, exported: Path) -> None:
    ours = run.lexicon["text"]
    _, theirs = folders.loaded(exported)
    for text in [*folders.ODD_TEXTS, *folders.SENTENCES, "a </s> <s> <pad> <unk> b"]:
        ids = ours.encode(text)
        assert theirs(text, add_special_tokens=False)["input_ids"] == ids
        assert theirs(text)["input_ids"] == [ours.end, *ids]
        plain = [number for number in ids if number != ours.unknown]
        assert theirs.decode(plain, skip_special_tokens=True) == ours.decode(plain)
    assert (theirs.eos_token_id, theirs.bos_token_id) == (ours.end, ours.end)
    assert (theirs.pad_token_id, theirs.unk_token_id) == (ours.pad, ours.unknown)
    assert theirs.model_max_length == 64


def test_logits_and_greedy_texts_are_the_same_to_auto_model(run: Run, exported: Path) -> None:
    theirs, words = folders.loaded(exported)
    ours = run.lexicon["text"]
    assert_same_logits(theirs, run, [[ours.end, *ours.encode(text)][:64] for text in folders.SENTENCES])
    ids = words(PROMPTS, padding=True, padding_side="left", return_tensors="pt")
    with torch.no_grad():
        found = theirs.generate(**ids, do_sample=False, max_new_tokens=9)
    for prompt, row, answer in zip(PROMPTS, found, run.answers(PROMPTS, GREEDY), strict=True):
        written = row[ids["input_ids"].shape[1] :].tolist()
        written = written[: written.index(ours.end)] if ours.end in written else written
        best = answer.candidates[0]
        pieces = best.pieces[:-1] if best.finished else best.pieces
        assert ours.pieces(written) == pieces, prompt
        assert ours.decode([*ours.encode(prompt), *written]) == ours.decode(ours.encode(prompt)) + answer.text


def test_what_went_out_comes_in_again(run: Run, exported: Path, tmp_path: Path) -> None:
    import_run(exported, tmp_path / "back")
    back = load(tmp_path / "back")
    assert back.spec.model == run.spec.model
    before, after = run.model.state_dict(), back.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert [answer.text for answer in back.answers(PROMPTS, GREEDY)] == [
        answer.text for answer in run.answers(PROMPTS, GREEDY)
    ]
    ours, theirs = run.lexicon["text"], back.lexicon["text"]
    assert ours.marks._replace(begin=ours.end) == theirs.marks
    assert [theirs.encode(text) for text in folders.ODD_TEXTS] == [
        ours.encode(text) for text in folders.ODD_TEXTS
    ]


def test_what_is_looked_at_after_a_prompt_has_one_space(run: Run) -> None:
    if run.lexicon["text"].spec.unit != "character":
        tokenizer = run.lexicon["text"]
        assert run.trace("The quick", " brown").target == tuple(
            tokenizer.pieces(tokenizer.encode("The quick brown"))
        )


BLOCK = "model.decoder.stack.blocks.0"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (f"{BLOCK}.join.kind=post_norm", rf"{BLOCK}\.join\.kind is 'post_norm' \(GPT-2: 'pre_norm'\)"),
        (f"{BLOCK}.mixers.0.positions.kind=rotary", rf"{BLOCK}\.mixers\.0\.positions\.kind is 'rotary'"),
        (f"{BLOCK}.mixers.1.gated=true", rf"{BLOCK}\.mixers\.1\.gated is True \(GPT-2: False\)"),
        (f"{BLOCK}.mixers.0.bias=false", rf"{BLOCK}\.mixers\.0\.bias is False"),
        (f"{BLOCK}.mixers.0.radius=5", rf"{BLOCK}\.mixers\.0\.radius is 5"),
        (f"{BLOCK}.mixers.0.score.kind=cosine", rf"{BLOCK}\.mixers\.0\.score\.kind is 'cosine'"),
        (f"{BLOCK}.mixers.1.dropout=0.2", rf"{BLOCK}\.mixers\.1\.dropout is 0\.2"),
        (f"{BLOCK}.shared=true", rf"{BLOCK}\.shared is True"),
        ("model.decoder.stack.final_norm={kind: layer, epsilon: 0.1}", r"final_norm\.epsilon is 0\.1"),
        ("model.decoder.embedding.positions.kind=sinusoidal", r"positions\.kind is 'sinusoidal'"),
        ("model.decoder.embedding.scale=true", r"model\.decoder\.embedding\.scale is True"),
        ("model.decoder.head.bias=true", r"model\.decoder\.head\.bias is True"),
        ("data.backwards=true", r"data\.backwards is True \(GPT-2: False\)"),
    ],
)
def test_what_gpt2_cannot_say_is_named(tmp_path: Path, setting: str, message: str) -> None:
    refuse_export(tmp_path, toy("gpt", setting), folders.SENTENCES * 4, message)


@pytest.mark.parametrize(("recipe", "kind"), [("rnn_lm", "embedding"), ("ngram", "kind is 'ngram'")])
def test_other_language_models_are_no_gpt2(tmp_path: Path, recipe: str, kind: str) -> None:
    refuse_export(tmp_path, toy(recipe), folders.SENTENCES * 4, f"no GPT-2: .*model.{kind}|{kind}")


def test_a_translator_is_no_gpt2(tmp_path: Path) -> None:
    message = "no Marian: model"
    refuse_export(tmp_path, toy("transformer", "data.joint=false"), pairs(60), message)


def refuse_export(place: Path, spec: Any, data: list[Any], message: str) -> None:
    steps = 1 if spec.training.kind() == "gradient" else None
    train(spec, data, place / "run", valid=data[:4], steps=steps, seed=1)
    with pytest.raises(UsageError, match=message):
        export_run(place / "run", place / "out", "hf")
    assert sorted(item.name for item in place.iterdir()) == ["run"]


def test_targets_and_damaged_runs_are_refused(tmp_path: Path) -> None:
    folders.saved(tmp_path / "theirs")
    import_run(tmp_path / "theirs", tmp_path / "run")
    with pytest.raises(UsageError, match=r"theirs: is not empty \(it holds config.json"):
        export_run(tmp_path / "run", tmp_path / "theirs", "hf")
    with pytest.raises(UsageError, match=r"--to hff: there is no such format \(did you mean 'hf'\?\)"):
        export_run(tmp_path / "run", tmp_path / "out", "hff")
    with pytest.raises(UsageError, match="holds counted words, but this run's model is 'language_model'"):
        export_run(tmp_path / "run", tmp_path / "out", "arpa")
    with pytest.raises(RunError, match="not a run"):
        export_run(tmp_path / "theirs", tmp_path / "out", "hf")
    weights = tmp_path / "run" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(RunError, match=r"model\.safetensors: damaged"):
        export_run(tmp_path / "run", tmp_path / "out", "hf")
    weights.unlink()
    with pytest.raises(RunError, match="not yet saved any weights"):
        export_run(tmp_path / "run", tmp_path / "out", "hf")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders.saved(tmp_path / "theirs")
    import_run(tmp_path / "theirs", tmp_path / "run")

    def full(path: Path, content: bytes) -> None:
        if path.name == "tokenizer.json":
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("regard.apps.exchange.write_synced", full)
    with pytest.raises(RegardError, match="out: cannot be written: No space left on device"):
        export_run(tmp_path / "run", tmp_path / "out", "hf")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["run", "theirs"]


# n-grams


def arpa_score(path: Path, words: list[str]) -> float:
    """log₁₀ p of a sentence as any toolkit reads the file: the longest n-gram there is, else backing off."""
    grams: dict[tuple[str, ...], tuple[float, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        score, tab, rest = line.partition("\t")
        if tab:
            text, _, weight = rest.partition("\t")
            grams[tuple(text.split(" "))] = float(score), float(weight or 0)
    total, sentence = 0.0, ["<s>", *words, "</s>"]
    for place in range(1, len(sentence)):
        for begin in range(max(0, place - 2), place + 1):
            gram = tuple(sentence[begin : place + 1])
            if gram in grams:
                total += grams[gram][0]
                break
            total += grams.get(gram[:-1], (0.0, 0.0))[1]
    return total


@pytest.mark.parametrize("unit", ["word", "character", "blank"])
def test_an_arpa_file_gives_the_scores_of_the_run(tmp_path: Path, unit: str) -> None:
    spec = toy("ngram", f"data.tokenizer={{unit: {unit}, size: 400}}", "model.order=3", "data.documents=line")
    train(spec, folders.SENTENCES * 2, tmp_path / "run", valid=folders.SENTENCES[:1], seed=1)
    export_run(tmp_path / "run", tmp_path / "lm.arpa", "arpa")
    run = load(tmp_path / "run")
    tokenizer = run.lexicon["text"]
    names = arpa_names(tokenizer)
    for text in (folders.SENTENCES[1], "The dog says what was written"):
        (scored,) = run.score([(text,)])
        words = [names[number] for number in tokenizer.encode(text)]
        assert arpa_score(tmp_path / "lm.arpa", words) == pytest.approx(scored.log_prob / 2.302585, rel=1e-4)
    if unit == "blank":
        assert "\tdog,\t" in (tmp_path / "lm.arpa").read_text()
    with pytest.raises(UsageError, match="is a folder; an ARPA file"):
        export_run(tmp_path / "run", tmp_path, "arpa")


def test_arpa_names_have_no_white_space_and_are_all_different() -> None:
    tokenizer = Tokenizer.train(TokenizerSpec(unit="character"), ["a b\nc\t▁"])
    names = arpa_names(tokenizer)
    assert len(set(names)) == len(names) == tokenizer.size
    assert not any(character.isspace() for name in names for character in name)


# The command line


def test_the_commands_say_what_was_written(regard: Command, tmp_path: Path) -> None:
    folders.saved(tmp_path / "theirs")
    done = regard("import", tmp_path / "theirs", tmp_path / "run")
    assert done.code == 0
    assert f"{tmp_path / 'run'}: " in done.out
    assert "vocabulary 330" in done.out
    told = regard("export", tmp_path / "run", tmp_path / "back", "--to", "hf", "--json").json[0]
    assert told["out"] == str(tmp_path / "back")
    assert told["vocabulary"] == 330
    assert told["parameters"] == sum(weight.numel() for weight in folders.model().parameters())
    again = regard("import", tmp_path / "theirs", tmp_path / "run")
    assert (again.code, again.out) == (2, "")
    assert again.err.startswith("regard: ")
    run = regard("run", tmp_path / "run", "--greedy", "--tokens", 5, stdin="The quick\n")
    theirs, words = folders.loaded(tmp_path / "theirs")
    assert run.out == "The quick" + folders.generated(theirs, words, ["The quick"], 5)[0] + "\n"
    (tmp_path / "text.txt").write_text(folders.SENTENCES[0] + "\n", encoding="utf-8")
    assert regard("eval", tmp_path / "run", "--data", tmp_path / "text.txt").code == 0
    assert regard("score", tmp_path / "run", "--data", tmp_path / "text.txt").code == 0
    page = tmp_path / "look.html"
    assert regard("look", tmp_path / "run", "--text", "The quick", "--html", page).code == 0
    assert page.stat().st_size > 1000
    assert regard("run", tmp_path / "run", "--json", "--greedy", stdin="x\n\n").code == 0
