"""A GPT-2 folder as a run: the same tokens, logits, texts and costs as transformers has."""

import itertools
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers.pre_tokenizers import ByteLevel

from regard.apps.exchange import export_run, import_run
from regard.apps.session import Run, load
from regard.apps.training import train
from regard.core.errors import DataError, RegardError, UsageError
from regard.core.sequences import Tokens
from regard.data.pairs import Pairs, PairsSpec
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.interop.hugging_face import read_folder
from regard.search.greedy import GreedySpec
from regard.training.run_folder import RunFolder
from tests.interop import folders

GREEDY = GreedySpec(longest_ratio=0.0, longest_extra=12)
PROMPTS = ["The quick", "A language model", "x", "Once upon a time there was", " the lazy dog\n", "42"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.saved(tmp_path_factory.mktemp("gpt2") / "theirs")


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("gpt2") / "ours"
    import_run(folder, out)
    return load(out)


def logits_of(run: Run, rows: list[list[int]]) -> torch.Tensor:
    model: Any = run.model
    with torch.no_grad():
        x, _ = model.read(Tokens.pad(rows, run.lexicon["text"].pad), model.start(len(rows)))
        return model.predict(x)


def assert_same_logits(theirs: Any, run: Run, rows: list[list[int]]) -> None:
    ours = logits_of(run, rows)
    for row, found in zip(rows, ours, strict=True):
        with torch.no_grad():
            wanted = theirs(torch.tensor([row])).logits[0]
        torch.testing.assert_close(found[: len(row)], wanted, atol=1e-4, rtol=1e-4)


def test_logits_of_a_padded_batch_are_theirs(folder: Path, run: Run) -> None:
    theirs, _ = folders.loaded(folder)
    torch.manual_seed(3)
    rows = [torch.randint(0, 300, (length,)).tolist() for length in (37, 1, 11, 23)]
    assert_same_logits(theirs, run, rows)


@given(st.data())
def test_any_size_and_setting_gives_their_logits(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    heads = data.draw(st.integers(1, 3))
    changes = {
        "n_head": heads,
        "n_embd": heads * data.draw(st.sampled_from((2, 5, 8))),
        "n_layer": data.draw(st.integers(1, 3)),
        "n_inner": data.draw(st.sampled_from((None, 7, 19))),
        "n_positions": data.draw(st.integers(9, 20)),
        "activation_function": data.draw(st.sampled_from(("gelu_new", "gelu", "relu", "silu"))),
        "layer_norm_epsilon": data.draw(st.sampled_from((1e-5, 1e-2))),
        "tie_word_embeddings": data.draw(st.booleans()),
        "scale_attn_weights": data.draw(st.booleans()),
        "vocab_size": data.draw(st.sampled_from((330, 352))),
    }
    place = tmp_path_factory.mktemp("any")
    folders.saved(place / "theirs", **changes)
    import_run(place / "theirs", place / "ours")
    theirs, _ = folders.loaded(place / "theirs")
    assert_same_logits(theirs, load(place / "ours"), [[5, 6, 7, 300, 8], [9], [1, 329, 2, 3, 4, 5, 6, 7, 8]])
    shutil.rmtree(place)


@pytest.mark.parametrize("text", folders.ODD_TEXTS)
def test_tokens_pieces_and_offsets_are_theirs(folder: Path, run: Run, text: str) -> None:
    _, words = folders.loaded(folder)
    inner = words.backend_tokenizer
    inner.encode_special_tokens = True  # "<|endoftext|>" in a text is text
    wanted = inner.encode(text, add_special_tokens=False)
    ours = run.lexicon["text"]
    assert ours.encode(text) == wanted.ids == ours.encode_many(["x", text])[1]
    assert ours.offsets(text) == wanted.offsets
    assert ours.decode(wanted.ids) == text == words.decode(wanted.ids)
    assert ours.end not in wanted.ids
    if text.isascii():
        assert "".join(ours.pieces(wanted.ids)) == text.replace(" ", "▁")


def test_special_tokens_are_where_the_folder_has_them(run: Run) -> None:
    ours = run.lexicon["text"]
    assert (ours.pad, ours.unknown, ours.begin, ours.end) == (329, 329, 329, 329)
    assert ours.size == 330
    assert ours.pieces([ours.end]) == [folders.END]
    assert ours.decode([*ours.encode("a b"), ours.end]) == "a b"
    with pytest.raises(AttributeError):
        ours.end = 3  # type: ignore[misc]


def test_the_tokenizer_survives_its_file(run: Run) -> None:
    ours = run.lexicon["text"]
    again = Tokenizer.from_json(ours.to_json())
    assert again.marks == ours.marks
    assert again.spec == ours.spec
    assert [again.encode(text) for text in folders.ODD_TEXTS] == [
        ours.encode(text) for text in folders.ODD_TEXTS
    ]


@pytest.mark.parametrize("prompts", [*([prompt] for prompt in PROMPTS), PROMPTS])
def test_greedy_continuations_are_theirs(folder: Path, run: Run, prompts: list[str]) -> None:
    theirs, words = folders.loaded(folder)
    wanted = folders.generated(theirs, words, prompts, 12)
    answers = run.answers(prompts, GREEDY)
    assert [answer.text for answer in answers] == wanted
    assert all("".join(a.source_pieces) == p.replace(" ", "▁") for a, p in zip(answers, prompts, strict=True))
    assert ["".join(run.pieces(prompt, GREEDY)) for prompt in prompts] == wanted


def test_greedy_continuations_end_where_theirs_do(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "theirs")
    theirs, words = folders.loaded(folder)
    prompt = words("The quick", return_tensors="pt")
    with torch.no_grad():
        written = theirs.generate(**prompt, do_sample=False, max_new_tokens=12, pad_token_id=329)[0]
    before = set(prompt["input_ids"][0].tolist())
    end = next(number for number in written[5:].tolist() if number not in before)
    for name in ("config.json", "generation_config.json"):
        folders.change_json(tmp_path / "theirs" / name, eos_token_id=end)
    name = words.convert_ids_to_tokens(end)
    folders.change_json(tmp_path / "theirs" / "tokenizer_config.json", eos_token=name)
    import_run(tmp_path / "theirs", tmp_path / "ours")
    (answer,) = load(tmp_path / "ours").answers(["The quick"], GREEDY)
    assert answer.candidates[0].finished
    assert len(answer.candidates[0].pieces) < 12
    assert answer.text == folders.generated(*folders.loaded(tmp_path / "theirs"), ["The quick"], 12)[0]


def test_an_empty_prompt_is_begun_after_the_end_of_another_text(folder: Path, run: Run) -> None:
    theirs, words = folders.loaded(folder)
    wanted = folders.generated(theirs, words, [folders.END], 12)
    assert [answer.text for answer in run.answers([""], GREEDY)] == wanted


def test_scores_and_perplexity_are_their_losses(folder: Path, run: Run) -> None:
    theirs, words = folders.loaded(folder)
    text = "The dog does not mind  what was\nwritten."
    ids = torch.tensor([[329, *words(text)["input_ids"], 329]])
    assert ids.shape[1] <= 37
    with torch.no_grad():
        loss = theirs(ids, labels=ids).loss.item()
    (scored,) = run.score([(text,)])
    assert scored.log_prob == pytest.approx(-loss * (ids.shape[1] - 1), rel=1e-5)
    assert run.evaluate([(text,)]).scores["perplexity"] == pytest.approx(math.exp(loss), rel=1e-4)


def test_what_was_looked_at_begins_with_the_first_token_of_a_prompt(run: Run) -> None:
    trace = run.trace("The quick", " fox")
    tokenizer = run.lexicon["text"]
    pieces = tokenizer.pieces(tokenizer.encode("The quick fox"))
    assert trace.attentions[0].columns == tuple(pieces[:-1])
    assert trace.attentions[0].rows == tuple(pieces[1:])
    assert run.trace("x", "").target == ("x",)


def test_going_out_again_gives_the_same_folder(folder: Path, run: Run, tmp_path: Path) -> None:
    export_run(run.path, tmp_path / "back", "hf")
    before, after = (load_file(place / "model.safetensors") for place in (folder, tmp_path / "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    here, there = (json.loads((place / "config.json").read_text()) for place in (folder, tmp_path / "back"))
    said_otherwise = {"pad_token_id", "n_inner"}  # None there: the end, four times the width
    both = here.keys() & there.keys() - said_otherwise
    assert len(both) > 12
    assert {name: here[name] for name in both} == {name: there[name] for name in both}
    theirs, words = folders.loaded(tmp_path / "back")
    _, original = folders.loaded(folder)
    assert [words(text)["input_ids"] for text in folders.ODD_TEXTS] == [
        original(text)["input_ids"] for text in folders.ODD_TEXTS
    ]
    assert folders.generated(theirs, words, PROMPTS, 12) == [a.text for a in run.answers(PROMPTS, GREEDY)]


# Other forms of a folder


def same_weights(one: Path, other: Path) -> bool:
    first, second = read_folder(one).weights, read_folder(other).weights
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_weights_may_be_in_several_files(folder: Path, tmp_path: Path) -> None:
    folders.saved(tmp_path, max_shard_size="30KB")
    assert not (tmp_path / "model.safetensors").exists()
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    assert same_weights(folder, tmp_path)
    missing = next(tmp_path.glob("model-00002-*"))
    missing.unlink()
    with pytest.raises(DataError, match=f"{missing.name}: missing"):
        read_folder(tmp_path)
    folders.change_json(tmp_path / "model.safetensors.index.json", weight_map={"a": "../model.safetensors"})
    with pytest.raises(
        DataError, match=r"weight_map: a: '../model.safetensors' is not a file of this folder"
    ):
        read_folder(tmp_path)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_as_whole(folder: Path, tmp_path: Path, kind: torch.dtype) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    rounded = {name: t.to(kind) for name, t in load_file(folder / "model.safetensors").items()}
    save_file(rounded, tmp_path / "model.safetensors", {"format": "pt"})
    weights = read_folder(tmp_path).weights
    words = weights["decoder.embedding.tokens.weight"]
    assert words.dtype == torch.float32
    assert torch.equal(words, rounded["transformer.wte.weight"].float())


def test_a_model_saved_without_its_head_or_with_its_masks_is_read(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    stored = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("transformer."): tensor for name, tensor in stored.items()}
    bare |= {"h.0.attn.bias": torch.ones(1, 1, 37, 37), "h.0.attn.masked_bias": torch.tensor(-1e4)}
    save_file(bare | {"lm_head.weight": bare["wte.weight"].clone()}, tmp_path / "model.safetensors")
    assert same_weights(folder, tmp_path)
    save_file(bare | {"lm_head.weight": bare["wte.weight"] + 1}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match=r"lm_head\.weight differs .*tie_word_embeddings"):
        read_folder(tmp_path)


def test_a_vocabulary_in_two_files_is_the_same(folder: Path, run: Run, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").unlink()
    model = json.loads(folders.library_tokenizer().to_str())["model"]
    vocabulary = model["vocab"] | {folders.END: 329}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    merges = "\n".join(" ".join(pair) for pair in model["merges"])
    (tmp_path / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", encoding="utf-8")
    found, wanted = read_folder(tmp_path).lexicon["text"], run.lexicon["text"]
    for text in folders.ODD_TEXTS:
        ids = wanted.encode(text)
        assert found.encode(text) == ids
        assert found.decode([*ids, 329]) == text
        assert found.pieces(ids) == wanted.pieces(ids)
    assert found.marks == wanted.marks
    (tmp_path / "added_tokens.json").write_text('{"<pad>": 330}')
    folders.change_json(tmp_path / "config.json", vocab_size=331)
    folders.change_json(tmp_path / "tokenizer_config.json", pad_token="<pad>")
    stored = load_file(tmp_path / "model.safetensors")
    words = stored["transformer.wte.weight"]
    stored["transformer.wte.weight"] = torch.cat((words, words[:1]))
    save_file(stored, tmp_path / "model.safetensors")
    assert read_folder(tmp_path).lexicon["text"].pad == 330
    (tmp_path / "added_tokens.json").write_text('{"<pad>": 340}')
    with pytest.raises(DataError, match=r"added_tokens.json: '<pad>' has number 340, but 330 is next"):
        read_folder(tmp_path)
    (tmp_path / "merges.txt").write_text("a b c d\n")
    with pytest.raises(DataError, match=r"vocab\.json: damaged or not a tokenizer file"):
        read_folder(tmp_path)


def test_ids_of_the_config_count_where_no_name_is_given(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "generation_config.json").unlink()
    folders.change_json(tmp_path / "config.json", eos_token_id=[5, 6], bos_token_id=7)
    marks = read_folder(tmp_path).lexicon["text"].marks
    assert marks._asdict() == {"pad": 5, "unknown": 5, "begin": 7, "end": 5, "hidden": None}
    folders.change_json(tmp_path / "config.json", eos_token_id=50256)  # GPT-2's own, never adapted
    with pytest.raises(DataError, match="no token ends a text"):
        read_folder(tmp_path)


def test_a_file_that_remembers_lengths_neither_cuts_nor_fills(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    inner = folders.library_tokenizer()
    wanted = inner.encode(folders.SENTENCES[0]).ids
    inner.enable_truncation(4)
    inner.enable_padding(length=90)
    inner.save(str(tmp_path / "tokenizer.json"))
    assert read_folder(tmp_path).lexicon["text"].encode(folders.SENTENCES[0]) == wanted


# Going on


def test_training_goes_on_from_an_imported_model(run: Run, tmp_path: Path) -> None:
    texts = folders.SENTENCES * 6
    before = run.evaluate([(text,) for text in texts]).scores["perplexity"]
    trained = train(
        run.path,
        texts,
        tmp_path / "more",
        start_from=run.path,
        steps=12,
        settings=["data.window=24", "data.rows=4"],
    )
    assert trained.run.lexicon["text"].marks == run.lexicon["text"].marks
    assert trained.run.evaluate([(text,) for text in texts]).scores["perplexity"] < before
    small = ("width=24", "stack.blocks.0.repeat=3", "stack.blocks.0.mixers.0.heads=4")
    other = train(
        "gpt",
        texts,
        tmp_path / "recipe",
        start_from=run.path,
        steps=1,
        settings=[
            *(f"model.decoder.{'embedding.' if 'width' in one else ''}{one}" for one in small),
            "model.decoder.stack.blocks.0.mixers.1.hidden=96",
            "model.decoder.embedding.positions.longest=37",
            "data.window=30",
            "data.rows=2",
        ],
    )
    assert other.run.lexicon["text"].vocabulary() == run.lexicon["text"].vocabulary()


def test_an_imported_vocabulary_is_not_learned_anew_nor_counted_with(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be learned anew: name the run that has it with --from"):
        train(run.path, folders.SENTENCES, tmp_path / "anew", steps=1)
    with pytest.raises(UsageError, match=r"'ngram' takes \(0, 1, 2, 3\) .* \(329, 329, 329, 329\)"):
        train("ngram", folders.SENTENCES, tmp_path / "counted", vocabulary=run.path)
    assert not (tmp_path / "counted").exists()
    for change in ("dropout=0.1", "lowercase=true"):
        with pytest.raises(UsageError, match=f"{change[:7]}.* unit='imported' is taken over as it is"):
            TokenizerSpec(unit="imported").override([change])


def test_pairs_are_marked_as_each_vocabulary_has_it(run: Run) -> None:
    own = Tokenizer.train(TokenizerSpec(unit="word", size=50), folders.SENTENCES)
    texts = list(itertools.pairwise(["the dog", "a", "the lazy dog", "x y z"]))
    spec = PairsSpec(held_out=0.0)
    for tokenizers in ((run.lexicon["text"], own), (own, run.lexicon["text"])):
        (batch,) = Pairs.prepare(spec, texts, texts, tokenizers=tokenizers).epoch(0)
        for row, source, target in zip(batch.rows.tolist(), batch.source.ids, batch.target.ids, strict=True):
            (here, there), (left, right) = tokenizers, texts[row]
            read, written = [*here.encode(left), here.end], [there.begin, *there.encode(right), there.end]
            assert source.tolist() == read + [here.pad] * (len(source) - len(read))
            assert target.tolist() == written + [there.pad] * (len(target) - len(written))


def test_passages_of_a_document_join_without_losing_or_doubling_a_space(run: Run) -> None:
    ours = run.lexicon["text"]
    own = Tokenizer.train(TokenizerSpec(unit="byte_bpe", size=330), folders.SENTENCES)
    assert (ours.doubles_space, own.doubles_space) == (False, True)
    for tokenizer in (ours, own):
        for text in ("the lazy dog", "the  lazy dog", "one two"):
            for cut in (i for i, character in enumerate(text) if character == " " and i):
                joined = tokenizer.encode(text[:cut]) + tokenizer.encode_more(text[cut:])
                assert tokenizer.decode(joined) == text
            assert tokenizer.encode("the") + tokenizer.encode_more(" dog") == tokenizer.encode("the dog")


def test_a_space_that_is_put_only_where_there_is_none_is_not_doubled(run: Run) -> None:
    inner = folders.library_tokenizer()
    inner.pre_tokenizer = ByteLevel(add_prefix_space=True)
    ours = Tokenizer.taken_over(inner, run.lexicon["text"].marks, 330)
    assert ours.encode("dog") == ours.encode(" dog")
    for more in (" dog", "  dog"):
        assert ours.encode("the") + ours.encode_more(more) == ours.encode(f"the{more}")


# Refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ({"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn is True"),
        ({"add_cross_attention": True}, "add_cross_attention is True: regard's GPT has no memory to look at"),
        ({"activation_function": "quick_gelu"}, "activation_function is 'quick_gelu'; regard knows gelu_new"),
        ({"activation_function": ["gelu"]}, r"activation_function is \['gelu'\]"),
        ({"model_type": "gpt3"}, r"model_type is 'gpt3', but regard reads gpt2, .*\(did you mean 'gpt2'"),
        ({"model_type": "llama"}, r"model_type is 'llama', but regard reads gpt2, .*marian$"),
        ({"n_head": 5}, "a width of 24 does not split into 5 heads"),
        ({"n_embd": "wide"}, "n_embd: expected a number, got 'wide'"),
        ({"n_layer": 0}, "repeat: got 0"),
        ({"n_layer": 4}, r"missing: transformer\.h\.3\.ln_1\.weight.* and 6 more"),
        ({"n_layer": 2}, r"no place in this model: transformer\.h\.2\.attn\.c_attn\.bias"),
        (
            {"n_positions": 38},
            r"transformer\.wpe\.weight is \[37, 24\], but config\.json asks for \[38, 24\]",
        ),
        ({"n_inner": 50}, r"mlp\.c_fc\.weight is \[24, 96\], but config\.json asks for \[24, 50\]"),
        ({"tie_word_embeddings": False}, r"missing: lm_head\.weight"),
        ({"vocab_size": 300}, r"tokenizer\.json: has ids up to 329, but config\.json gives .* 300 rows"),
    ],
)
def test_what_cannot_be_taken_over_is_named(
    folder: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    shutil.copytree(folder, tmp_path / "theirs")
    folders.change_json(tmp_path / "theirs" / "config.json", **change)
    with pytest.raises(RegardError, match=message) as error:
        import_run(tmp_path / "theirs", tmp_path / "ours")
    assert error.value.exit_code == 2
    assert sorted(item.name for item in tmp_path.iterdir()) == ["theirs"]


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
)
def test_damaged_and_missing_files_are_named(folder: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_bytes(b"\xff{")
    with pytest.raises(DataError, match=f"{name}: damaged"):
        read_folder(tmp_path)
    (tmp_path / name).write_bytes(b"[1]")
    with pytest.raises(DataError, match=name):
        read_folder(tmp_path)
    (tmp_path / name).unlink()
    if name != "tokenizer_config.json":  # config.json numbers the special tokens as well
        with pytest.raises(RegardError, match=f"{name}: missing|no config.json|no tokenizer.json either"):
            read_folder(tmp_path)


def test_pickled_weights_are_read_if_they_are_nothing_but_tensors(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    stored = load_file(folder / "model.safetensors")
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"pytorch_model\.bin: damaged, .* that writes model\.safetensors"):
        read_folder(tmp_path)
    torch.save({"weights": stored}, tmp_path / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"pytorch_model\.bin: expected tensors by name"):
        read_folder(tmp_path)
    torch.save(stored, tmp_path / "pytorch_model.bin")
    folders.change_json(
        tmp_path / "config.json", model_type=...
    )  # as old as that, it is known by its weights
    found, wanted = read_folder(tmp_path).weights, read_folder(folder).weights
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    (tmp_path / "pytorch_model.bin").rename(tmp_path / "tf_model.h5")
    with pytest.raises(UsageError, match=r"tf_model\.h5: weights of another framework"):
        read_folder(tmp_path)


@pytest.mark.parametrize(("bos", "eos"), [(False, False), (False, True), (True, False), (True, True)])
def test_tokens_that_are_put_around_texts_are_understood_or_refused(
    folder: Path, tmp_path: Path, bos: bool, eos: bool
) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    folders.change_json(tmp_path / "tokenizer_config.json", add_bos_token=bos, add_eos_token=eos)
    if eos:
        with pytest.raises(UsageError, match=r"tokenizer.json: puts special tokens around every text .*'a"):
            read_folder(tmp_path)
    else:
        assert read_folder(tmp_path).system.paths()["task.opened"] is bos


def test_a_folder_with_something_in_it_is_left_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("precious")
    with pytest.raises(UsageError, match=r"out: is not empty \(it holds mine.txt\); left untouched"):
        import_run(folder, tmp_path / "out")
    with pytest.raises(UsageError, match=r"mine.txt: is a file"):
        import_run(folder, tmp_path / "out" / "mine.txt")
    with pytest.raises(UsageError, match="there is no such folder; nothing is fetched"):
        import_run(tmp_path / "gpt2", tmp_path / "new")
    with pytest.raises(UsageError, match=r"holds no config.json \(it holds mine.txt\)"):
        import_run(tmp_path / "out", tmp_path / "new")
    (tmp_path / "empty").mkdir()
    import_run(folder, tmp_path / "empty")
    RunFolder.open(tmp_path / "empty").verify()
