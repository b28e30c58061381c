"""Folders of BERT and its kin as runs and back: the same tokens, states and logits as transformers has."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import transformers

from regard.apps.exchange import export_run, import_run
from regard.apps.session import Run, load
from regard.apps.training import train
from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from tests.apps.conftest import Command
from tests.apps.toys import LEARNED, UNCOMPARED, labelled, labelled_pairs, tagged, texts, toy
from tests.interop import reader_folders as folders
from tests.interop.folders import change_json

every_kin = pytest.mark.parametrize("kin", folders.KIN)
CLOSE = {"atol": 1e-4, "rtol": 1e-4}


def taken(place: Path, kin: str, architecture: str | None = None, **changes: Any) -> tuple[Path, Run]:
    folder = folders.saved(place / "theirs", kin, architecture, **changes)
    import_run(folder, place / "run")
    return folder, load(place / "run")


def batch(words: Any) -> Any:
    return words(folders.SENTENCES, return_tensors="pt", padding=True)


def tokens_of(given: Any, run: Run) -> Tokens:
    types = given.get("token_type_ids")
    return Tokens(given["input_ids"], given["attention_mask"].bool(), types)


@torch.no_grad()
def assert_same_states(theirs: Any, words: Any, run: Run) -> None:
    """After every layer, of texts of different lengths, and of a pair."""
    body: Any = getattr(theirs, theirs.base_model_prefix, theirs)
    pair = words(folders.SENTENCES[0], folders.SENTENCES[1], return_tensors="pt")
    for given in (batch(words), pair):
        given = {name: tensor for name, tensor in given.items() if name != "token_type_ids"} | (
            {"token_type_ids": given["token_type_ids"]}
            if getattr(body.config, "type_vocab_size", 1) > 1 and "token_type_ids" in given
            else {}
        )
        expected = body(**given, output_hidden_states=True).hidden_states
        real = given["attention_mask"].bool()
        model: Any = run.model
        found = model.layers(tokens_of(given, run))
        # Where a table is narrow, theirs lead it to its width before or after they show it.
        pairs = [(a, b) for a, b in zip(found, expected, strict=True) if a.shape == b.shape]
        assert len(pairs) >= len(found) - 1
        for ours, other in pairs:
            assert torch.allclose(ours[real], other[real], **CLOSE)


@torch.no_grad()
def assert_same_logits(theirs: Any, words: Any, run: Run) -> None:
    given, model = batch(words), run.model
    given.pop("token_type_ids", None)
    expected = theirs(**given)
    expected = expected.prediction_logits if "prediction_logits" in expected else expected.logits
    found = model.predict(model.read(tokens_of(given, run)).states)  # type: ignore[operator]
    real = given["attention_mask"].bool()
    assert expected.std() > 0.5
    assert torch.allclose(found[real], expected[real], **CLOSE)


@every_kin
def test_a_masked_model_comes_in_and_goes_out(tmp_path: Path, kin: str) -> None:
    folder, run = taken(tmp_path, kin)
    masked = folders.KIN[kin].masked
    theirs, words = folders.loaded(folder, masked)
    assert_same_states(theirs, words, run)
    assert_same_logits(theirs, words, run)
    export_run(tmp_path / "run", tmp_path / "out", "hf", family=theirs.config.model_type)
    back, words_back = folders.loaded(tmp_path / "out", masked)
    assert_same_states(back, words_back, run)
    assert_same_logits(back, words_back, run)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == [masked]
    import_run(tmp_path / "out", tmp_path / "again")
    assert load(tmp_path / "again").spec.model == run.spec.model


@every_kin
def test_a_body_comes_in_and_goes_out(tmp_path: Path, kin: str) -> None:
    body = folders.KIN[kin].body
    folder, run = taken(tmp_path, kin, body)
    assert run.spec.model.kind() == "reader"
    theirs, words = folders.loaded(folder, body)
    assert_same_states(theirs, words, run)
    export_run(tmp_path / "run", tmp_path / "out", "hf", family=theirs.config.model_type)
    back, words_back = folders.loaded(tmp_path / "out", body)
    assert_same_states(back, words_back, run)
    with torch.no_grad():
        given = batch(words)
        if (pooled := getattr(theirs(**given), "pooler_output", None)) is not None:
            gists = run.embed(folders.SENTENCES, pooling="gist")
            assert np.allclose(gists, pooled.numpy(), atol=1e-4)
            assert np.allclose(back(**batch(words_back)).pooler_output, pooled, atol=1e-4)
        else:
            with pytest.raises(UsageError, match="no layer of its own over the first state"):
                run.embed(folders.SENTENCES, pooling="gist")


@every_kin
def test_ids_are_the_same_on_awkward_texts(tmp_path: Path, kin: str) -> None:
    folder, run = taken(tmp_path, kin)
    export_run(tmp_path / "run", tmp_path / "out", "hf")
    ours = run.lexicon["text"]
    _, words = folders.loaded(folder, folders.KIN[kin].masked)
    written = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in [*folders.ODD_TEXTS, *folders.SENTENCES]:
        expected = words(text)["input_ids"]
        assert [ours.begin, *ours.encode(text), ours.end] == expected, text
        assert written(text)["input_ids"] == expected, text
    assert words("a", "b")["input_ids"] == written("a", "b")["input_ids"]
    assert (ours.pad, ours.marks.hidden) == (words.pad_token_id, words.mask_token_id)
    assert written.mask_token_id == words.mask_token_id


@pytest.mark.parametrize(
    ("kin", "architecture"), [("bert", "BertForPreTraining"), ("albert", "AlbertForPreTraining")]
)
def test_whether_passages_belong_together_goes_along(tmp_path: Path, kin: str, architecture: str) -> None:
    folder, run = taken(tmp_path, kin, architecture)
    theirs, words = folders.loaded(folder, architecture)
    export_run(tmp_path / "run", tmp_path / "out", "hf")
    back, _ = folders.loaded(tmp_path / "out", architecture)
    given = words(folders.SENTENCES[0], folders.SENTENCES[1], return_tensors="pt")
    model: Any = run.model
    with torch.no_grad():
        expected = theirs(**given)
        expected = expected[1]
        memory = model.read(tokens_of(given, run))
        # There 0 says that the second follows the first, here 1 does.
        for follows in (0, 1):
            cost = model.relation_cost(memory, torch.tensor([[follows]]))
            assert cost.item() == pytest.approx(-expected.log_softmax(-1)[0, 1 - follows].item(), abs=1e-4)
        assert torch.allclose(back(**given)[1], expected, **CLOSE)


def test_the_discriminator_comes_as_a_reader_and_its_head_is_left_behind(tmp_path: Path) -> None:
    folder = folders.saved(tmp_path / "theirs", "electra", "ElectraForPreTraining")
    done = import_run(folder, tmp_path / "run")
    assert any(name.startswith("discriminator_predictions.") for name in done.left)
    theirs, words = folders.loaded(folder, "ElectraForPreTraining")
    assert_same_states(theirs, words, load(tmp_path / "run"))


def old_folder(place: Path) -> Path:
    """Pickled weights under old names, a vocabulary a piece a line, a config that does not say what it is."""
    folders.saved(place, "bert")
    weights = transformers.BertForMaskedLM.from_pretrained(place).state_dict()
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): w
        for name, w in weights.items()
    }
    torch.save(old | {"bert.embeddings.position_ids": torch.arange(50)[None]}, place / "pytorch_model.bin")
    vocabulary = sorted(folders.pieces().get_vocab().items(), key=lambda item: item[1])
    (place / "vocab.txt").write_text("".join(f"{piece}\n" for piece, _ in vocabulary), encoding="utf-8")
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (place / name).unlink()
    change_json(place / "config.json", model_type=..., architectures=...)
    return place


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"do_lower_case": False},
        {"do_lower_case": True, "strip_accents": False},
        {"tokenize_chinese_chars": False},
    ],
)
def test_an_old_folder_is_read(tmp_path: Path, said: dict[str, Any]) -> None:
    new, old = folders.saved(tmp_path / "new", "bert"), old_folder(tmp_path / "old")
    (old / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
    import_run(old, tmp_path / "run")
    run = load(tmp_path / "run")
    theirs, words = folders.loaded(new, "BertForMaskedLM")
    assert_same_logits(theirs, words, run)
    expected = transformers.BertTokenizer.from_pretrained(old, **said)
    ours = run.lexicon["text"]
    for text in [*folders.ODD_TEXTS, *folders.SENTENCES]:
        assert [ours.begin, *ours.encode(text), ours.end] == expected(text)["input_ids"], text


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (exec, ("raise SystemExit('code was run')",))


def test_pickled_weights_that_hold_more_than_tensors_are_refused(tmp_path: Path) -> None:
    folder = old_folder(tmp_path / "old")
    torch.save({"weight": Evil()}, folder / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"pytorch_model\.bin.*more than tensors, which could run code"):
        import_run(folder, tmp_path / "run")
    (folder / "pytorch_model.bin").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"pytorch_model\.bin.*damaged"):
        import_run(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"hidden_act": "mish"}, "hidden_act is 'mish'; regard knows"),
        ({"hidden_size": "wide"}, "expected a number, got 'wide'"),
        ({"num_hidden_layers": 4}, r"missing: bert.encoder.layer.3"),
        (
            {"intermediate_size": 41},
            r"intermediate.dense.weight is \[40, 24\], but config.json asks for \[41, 24\]",
        ),
        ({"vocab_size": 3}, "gives the model 3 rows"),
        ({"model_type": "bret"}, "did you mean 'bert'"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = folders.saved(tmp_path / "theirs", "bert")
    change_json(folder / "config.json", **change)
    with pytest.raises((DataError, UsageError), match=message):
        import_run(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_vocabularies_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    folder = folders.saved(tmp_path / "theirs", "albert")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"tokenizer\.json: missing; there is no vocab\.txt either"):
        import_run(folder, tmp_path / "run")
    (folder / "spiece.model").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"spiece\.model: regard does not read this form"):
        import_run(folder, tmp_path / "run")
    (folder / "vocab.txt").write_text("[UNK]\na\nb\n", encoding="utf-8")
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(DataError, match="no cls_token is named"):
        import_run(folder, tmp_path / "run")


# What is trained here goes out


@pytest.mark.parametrize(
    ("recipe", "settings", "architecture", "unit"),
    [
        ("bert", LEARNED, "BertForPreTraining", "wordpiece"),
        ("roberta", LEARNED, "RobertaForMaskedLM", "byte_bpe"),
        ("albert", LEARNED, "AlbertForPreTraining", "wordpiece"),
        ("bert", (), "RoFormerForMaskedLM", "wordpiece"),
        ("bert", UNCOMPARED, "RoFormerForMaskedLM", "wordpiece"),
        ("roberta", (), "RoFormerForMaskedLM", "byte_bpe"),
    ],
)
def test_own_masked_models_go_out(
    tmp_path: Path, recipe: str, settings: tuple[str, ...], architecture: str, unit: str
) -> None:
    size = 320 if unit == "byte_bpe" else 90
    spec = toy(recipe, f"data.tokenizer={{unit: {unit}, size: {size}, hides: true}}", *settings)
    if architecture.endswith("ForPreTraining"):
        spec = spec.override(["model.relation.hidden=24"])  # as wide as the model, which toys are not
    train(spec, folders.SENTENCES * 8, tmp_path / "run", valid=folders.SENTENCES * 3, steps=2, seed=1)
    export_run(tmp_path / "run", tmp_path / "out", "hf")
    run = load(tmp_path / "run")
    theirs, words = folders.loaded(tmp_path / "out", architecture)
    ours = run.lexicon["text"]
    # Rows of a toy are short: what is cut is cut on both sides.
    texts = ["the quick brown fox", "a dog does not", "zürich"]
    for text in texts:
        assert words(text)["input_ids"] == [ours.begin, *ours.encode(text), ours.end]
    given = words(texts, return_tensors="pt", padding=True)
    given.pop("token_type_ids", None)
    model: Any = run.model
    with torch.no_grad():
        expected = theirs(**given)[0]
        found = model.predict(model.read(tokens_of(given, run)).states)
    real = given["attention_mask"].bool()
    assert torch.allclose(found[real], expected[real], **CLOSE)
    # The gap is found in theirs as it is here, spaces and all.
    for text in ("the quick ___ fox", "___ dog", "a ___, b", "x ___"):
        gap = text.replace("___", words.mask_token)
        (answer,) = run.answers([text])
        assert ours.pieces(words(gap)["input_ids"]) == answer.source_pieces, text


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("albert", r"no ALBERT: model\.encoder\.embedding\.positions\.kind is 'none' \(ALBERT: 'learned'\)"),
        (
            "electra",
            r"no ELECTRA: model\.encoder\.embedding\.positions\.kind is 'none' \(ELECTRA: 'learned'\)",
        ),
    ],
)
def test_what_a_refused_recipe_lacks_is_named_with_the_settings_that_let_it_go_out(
    tmp_path: Path, recipe: str, said: str
) -> None:
    spec = toy(recipe, *(() if recipe == "electra" else ("model.relation.hidden=24",)))
    train(spec, texts(60), tmp_path / "run", valid=texts(20, seed=1), steps=1, seed=1)
    with pytest.raises(UsageError, match=said) as refused:
        export_run(tmp_path / "run", tmp_path / "out", "hf")
    settings = re.findall(r"--set ([\w.=]+)", str(refused.value))
    train(spec.override(settings), texts(60), tmp_path / "again", valid=texts(20, seed=1), steps=1, seed=1)
    export_run(tmp_path / "again", tmp_path / "out", "hf")


def test_roformer_is_told_how_it_turns_queries_and_keys(tmp_path: Path) -> None:
    """As it would find out by itself, for texts far longer than rows were."""
    train(toy("roberta"), texts(60), tmp_path / "run", valid=texts(20, seed=1), steps=1, seed=1)
    export_run(tmp_path / "run", tmp_path / "out", "hf", family="roformer")
    theirs, words = folders.loaded(tmp_path / "out", "RoFormerForMaskedLM")
    told = theirs.roformer.encoder.embed_positions
    assert told.weight.shape == (1536, 12)
    assert torch.allclose(told.weight, told.create_weight(), atol=1e-6)
    assert words.model_max_length == 1536
    run = load(tmp_path / "run")
    given = words(["abc defdef ghij " * 40, "abc"], return_tensors="pt", padding=True)
    assert given["input_ids"].shape[1] > 500
    model: Any = run.model
    real = given["attention_mask"].bool()
    with torch.no_grad():
        found, expected = model.read(tokens_of(given, run)).states, theirs.roformer(**given)[0]
    assert torch.allclose(found[real], expected[real], **CLOSE)
    other = toy("roberta", "model.encoder.stack.blocks.0.mixers.0.positions.base=500")
    train(other, texts(60), tmp_path / "other", valid=texts(20, seed=1), steps=1, seed=1)
    with pytest.raises(UsageError, match=r"no RoFormer: .*base is 500\.0 \(RoFormer: 10000\.0\)"):
        export_run(tmp_path / "other", tmp_path / "no", "hf")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", {"rotary_value": True}, "rotary_value is True"),
        ("tokenizer_config.json", {"tokenizer_class": "RoFormerTokenizerFast"}, "is 'RoFormerTokenizerFast'"),
        ("tokenizer_config.json", {"tokenizer_class": ...}, "is 'RoFormerTokenizer', which .*rjieba"),
    ],
)
def test_a_roformer_that_does_more_is_refused(
    tmp_path: Path, file: str, change: dict[str, Any], message: str
) -> None:
    folder = folders.saved(tmp_path / "theirs", "roformer")
    change_json(folder / file, **change)
    with pytest.raises(UsageError, match=message):
        import_run(folder, tmp_path / "run")


@pytest.mark.parametrize("said", [..., None])
def test_the_words_of_a_roformer_are_as_wide_as_its_layers_where_it_is_silent(
    tmp_path: Path, said: Any
) -> None:
    folder = folders.saved(tmp_path / "theirs", "roformer")
    change_json(folder / "config.json", embedding_size=said)
    import_run(folder, tmp_path / "run")
    assert load(tmp_path / "run").spec.model.reader().embedding.table is None


def test_one_type_of_a_roformer_must_say_nothing(tmp_path: Path) -> None:
    folder = folders.saved(tmp_path / "theirs", "roformer", type_vocab_size=1)
    with pytest.raises(UsageError, match=r"type_vocab_size is 1, and roformer\..* is not zero"):
        import_run(folder, tmp_path / "run")
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    weights["roformer.embeddings.token_type_embeddings.weight"].zero_()
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})
    import_run(folder, tmp_path / "run")
    theirs, words = folders.loaded(folder, "RoFormerForMaskedLM")
    assert_same_states(theirs, words, load(tmp_path / "run"))


def test_an_own_detector_goes_out_without_what_deceived_it(tmp_path: Path) -> None:
    spec = toy("electra", "data.tokenizer={unit: wordpiece, size: 90, hides: true}", *LEARNED)
    train(spec, folders.SENTENCES * 8, tmp_path / "run", valid=folders.SENTENCES * 3, steps=1, seed=1)
    export_run(tmp_path / "run", tmp_path / "out", "hf")
    theirs, words = folders.loaded(tmp_path / "out", "ElectraForPreTraining")
    run = load(tmp_path / "run")
    given = words(["the quick brown fox", "a dog"], return_tensors="pt", padding=True)
    model: Any = run.model
    with torch.no_grad():
        expected, found = theirs(**given).logits, model.doubt(model.read(tokens_of(given, run)))
    real = given["attention_mask"].bool()
    assert torch.allclose(found[real], expected[real], **CLOSE)
    with pytest.raises(UsageError, match=r"this run is no BERT: model\.kind is 'detector'"):
        export_run(tmp_path / "run", tmp_path / "other", "hf", family="bert")


def test_a_run_that_is_none_of_them_is_refused_with_what_differs(tmp_path: Path) -> None:
    spec = toy("bert", "model.encoder.stack.blocks.0.mixers.1.gated=true", *LEARNED)
    train(spec, texts(60), tmp_path / "run", valid=texts(20, seed=1), steps=1, seed=1)
    with pytest.raises(UsageError, match=r"this run is no BERT: .*mixers\.1\.gated is True \(BERT: False\)"):
        export_run(tmp_path / "run", tmp_path / "out", "hf")
    with pytest.raises(UsageError, match=r"this run is no DistilBERT: .*segments"):
        export_run(tmp_path / "run", tmp_path / "out", "hf", family="distilbert")
    with pytest.raises(UsageError, match=r"model_type is 'brt'.*did you mean 'bert'"):
        export_run(tmp_path / "run", tmp_path / "out", "hf", family="brt")
    assert not (tmp_path / "out").exists()


# What an imported reader is for


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reader")
    folders.saved(place / "theirs", "bert", "BertModel")
    import_run(place / "theirs", place / "run")
    return place / "run"


@pytest.mark.parametrize(
    ("recipe", "data"),
    [("classifier", labelled(40)), ("pair_classifier", labelled_pairs(40)), ("tagger", tagged(40))],
)
def test_others_start_from_it(reader: Path, tmp_path: Path, recipe: str, data: list[Any]) -> None:
    settings = ["evaluation.examples=4", "data.longest=40"]
    trained = train(recipe, data, tmp_path, steps=2, settings=settings, start_from=reader, seed=1)
    before, after = load(reader).model.state_dict(), trained.run.model.state_dict()
    name = "encoder.stack.layers.2.mixers.1.network.widen.weight"
    assert torch.allclose(before[name], after[name], atol=5e-3)
    assert trained.run.lexicon["text"].vocabulary() == load(reader).lexicon["text"].vocabulary()
    (given, counted) = trained.run.spec.training.to_dict(), trained.result.step
    assert (given["epochs"], given["steps"], counted) == (None, 2, 2)
    assert trained.run.embed(["abc"] if recipe != "pair_classifier" else ["a\tb"]).shape == (1, 24)


def test_without_other_words_they_go_through_their_data_a_few_times(reader: Path, tmp_path: Path) -> None:
    settings = ["evaluation.examples=4", "data.longest=40", "data.batch_tokens=60", "training.epochs=0.5"]
    given = labelled(40)
    trained = train(
        "classifier", given, tmp_path, valid=given[:4], settings=settings, start_from=reader, seed=1
    )
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert {event["epoch"] for event in log if event["event"] == "step"} == {0}
    assert 2 <= trained.result.step <= 6
    assert [e["rate"] for e in log if e["event"] == "step"][-1] < 2e-4  # it has come down from 5e-4


def test_by_itself_it_has_nothing_to_learn(reader: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to learn from: start another from it"):
        train(reader, rated(), tmp_path / "out", start_from=reader)
    assert not (tmp_path / "out").exists()


def rated() -> list[tuple[str, str, str]]:
    words = ["the dog", "a dog", "quick fox", "a model", "zürich", "42 francs"]
    return [(one, other, str(len(one) - len(other))) for one in words for other in words]


def test_it_answers_with_vectors_and_is_judged_by_angles(
    regard: Command, reader: Path, tmp_path: Path
) -> None:
    said = regard("run", reader, stdin="the dog\na fox\n")
    vectors = [json.loads(line) for line in said.out.splitlines()]
    assert np.allclose(vectors, load(reader).embed(["the dog", "a fox"]), atol=1e-5)
    page = tmp_path / "look.html"
    assert regard("look", reader, "--text", "the dog", "--html", page).code == 0
    rows = rated()
    (tmp_path / "pairs.tsv").write_text(
        "first\tsecond\tlabel\n" + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8"
    )
    judged = regard("eval", reader, "--data", tmp_path / "pairs.tsv", "--json").json[0]
    one, other = (load(reader).embed([row[side] for row in rows], normalise=True) for side in (0, 1))
    expected = np.corrcoef((one * other).sum(1), [float(row[2]) for row in rows])[0, 1]
    assert judged["scores"]["pearson"] == pytest.approx(expected, abs=1e-5)
    assert judged["metric"] == "spearman"
    assert regard("score", reader, "--data", tmp_path / "pairs.tsv").code == 2


def test_an_imported_masked_model_fills_gaps_shows_itself_and_goes_on(
    regard: Command, tmp_path: Path
) -> None:
    folder, run = taken(tmp_path, "roberta")
    theirs, words = folders.loaded(folder, "RobertaForMaskedLM")
    given = words("The quick<mask> fox", return_tensors="pt")
    with torch.no_grad():
        row = theirs(**given).logits[0][given["input_ids"][0] == words.mask_token_id][0].log_softmax(-1)
    said = regard("run", tmp_path / "run", "--json", "--best", 3, stdin="The quick ___ fox\n").json[0]
    assert [c["log_prob"] for c in said["n_best"]] == pytest.approx(row.topk(3).values.tolist(), abs=1e-4)
    (trace,) = [run.trace("The quick ___ fox")]
    assert len(trace.attentions) == 3
    with torch.no_grad():
        seen = theirs.roberta(**given, output_attentions=True).attentions
    for ours, other in zip(trace.attentions, seen, strict=True):
        assert np.allclose(ours.weights, other[0].numpy(), atol=1e-5)
    more = train(
        tmp_path / "run",
        folders.SENTENCES * 20,
        tmp_path / "more",
        valid=folders.SENTENCES * 8,
        steps=1,
        settings=["data.window=20", "evaluation.examples=2"],
        start_from=tmp_path / "run",
    )
    assert more.result.step == 1
