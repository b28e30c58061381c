"""Translators with SentencePiece's own files come in as their own program reads them."""

import json
from pathlib import Path

import pytest
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from regard.apps.exchange import export_run, import_run
from regard.apps.session import load
from regard.core.errors import DataError, UsageError
from regard.interop.sentencepiece_files import read_pieces
from regard.search.greedy import GreedySpec

sentencepiece = pytest.importorskip("sentencepiece", reason="trains the vocabularies of these tests")

ENGLISH = [
    "A man is riding a bicycle down the street.",
    "Two young girls are playing with a small brown dog in the park.",
    "The woman wears a red hat and reads a newspaper on a bench.",
    "Several people stand in front of a large building at night.",
    "Children jump into the water while their parents watch them.",
]
GERMAN = [
    "Ein Mann fährt mit dem Fahrrad die Straße hinunter.",
    "Zwei junge Mädchen spielen im Park mit einem kleinen braunen Hund.",
    "Die Frau trägt einen roten Hut und liest auf einer Bank eine Zeitung.",
    "Mehrere Leute stehen nachts vor einem großen Gebäude.",
    "Kinder springen ins Wasser, während ihre Eltern ihnen zusehen.",
]
TEXTS = [
    *ENGLISH,
    "a dog reads a red bicycle",
    "  two   blanks ",
    "ﬁne ① half-width ｱ",
    "日本 zebra",
    ">>deu<< A man.",
]


def learn(folder: Path, name: str, lines: list[str], size: int, **options: object) -> list[str]:
    text = folder / f"{name}.txt"
    text.write_text("\n".join(lines * 20), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / name), vocab_size=size, minloglevel=2, **options
    )
    text.unlink()
    (folder / f"{name}.model").rename(folder / f"{name}.spm")
    lines = (folder / f"{name}.vocab").read_text(encoding="utf-8").splitlines()
    (folder / f"{name}.vocab").unlink()
    return [line.split("\t")[0] for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small translator as OPUS-MT's are published: no tokenizer.json."""
    place = tmp_path_factory.mktemp("opus")
    pieces = [*learn(place, "source", ENGLISH, 70), *learn(place, "target", GERMAN, 75)]
    own = [piece for piece in dict.fromkeys(pieces) if piece not in ("<s>", "</s>", "<unk>")]
    names = ["</s>", "<unk>", *own, ">>deu<<", "<pad>"]
    (place / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (place / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}))
    torch.manual_seed(1)
    MarianMTModel(
        MarianConfig(
            vocab_size=len(names),
            d_model=24,
            encoder_layers=2,
            decoder_layers=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            max_position_embeddings=64,
            pad_token_id=len(names) - 1,
            decoder_start_token_id=len(names) - 1,
            eos_token_id=0,
            forced_eos_token_id=None,
            scale_embedding=True,
        )
    ).save_pretrained(place)
    assert not (place / "tokenizer.json").exists()
    return place


def theirs(folder: Path) -> MarianTokenizer:
    return MarianTokenizer(
        str(folder / "source.spm"), str(folder / "target.spm"), str(folder / "vocab.json"), "en", "de"
    )


@pytest.mark.filterwarnings("ignore:Recommended")  # sacremoses, which unifies punctuation
def test_texts_are_cut_and_numbered_as_by_transformers(folder: Path, tmp_path: Path) -> None:
    import_run(folder, tmp_path / "run")
    run, expected = load(tmp_path / "run"), theirs(folder)
    read, written = run.lexicon["source"], run.lexicon["target"]
    for text in TEXTS:
        assert [*read.encode(text), read.end] == expected(text)["input_ids"], text
    for text in GERMAN:
        ids = expected(text_target=text)["input_ids"]
        assert [*written.encode(text), written.end] == ids
        assert written.decode(ids[:-1]) == expected.decode(ids, skip_special_tokens=True) == text
    assert read.encode(GERMAN[1]) != written.encode(GERMAN[1])
    assert (read.size, read.pad, read.begin) == (written.size, written.pad, written.pad)


@pytest.mark.filterwarnings("ignore:Recommended")
def test_translations_are_those_of_generate(folder: Path, tmp_path: Path) -> None:
    import_run(folder, tmp_path / "run")
    run, expected = load(tmp_path / "run"), theirs(folder)
    model = MarianMTModel.from_pretrained(folder).eval()
    for text in ENGLISH:
        batch = expected([text], return_tensors="pt")
        with torch.no_grad():
            ids = model.generate(**batch, num_beams=1, do_sample=False, max_new_tokens=12)[0, 1:].tolist()
        search = GreedySpec(longest_ratio=0.0, longest_extra=12)
        answer = next(iter(run.answers([text], search=search)))
        own = list(answer.candidates[0].tokens)
        assert own == (ids[: ids.index(0)] if 0 in ids else ids)


def test_two_ways_of_cutting_do_not_go_out_as_one(folder: Path, tmp_path: Path) -> None:
    import_run(folder, tmp_path / "run")
    with pytest.raises(UsageError, match="cut otherwise"):
        export_run(tmp_path / "run", tmp_path / "out", "hf")
    assert not (tmp_path / "out").exists()
    export_run(tmp_path / "run", tmp_path / "ct2", "ct2")
    assert (tmp_path / "ct2" / "model.bin").exists()


def test_what_is_no_such_file_is_named(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.spm"
    for content in (
        b"",
        b"\x0a",
        b"\x0a\xff\xff\xff",
        b"no file of pieces",
        (folder / "source.spm").read_bytes()[:-9],
    ):
        broken.write_bytes(content)
        with pytest.raises(DataError, match="not a SentencePiece file"):
            read_pieces(broken)
    with pytest.raises(DataError, match="cannot be read"):
        read_pieces(tmp_path / "nowhere.spm")


def test_other_kinds_of_pieces_are_refused(tmp_path: Path) -> None:
    learn(tmp_path, "pairs", ENGLISH, 70, model_type="bpe")
    with pytest.raises(UsageError, match="unigram"):
        read_pieces(tmp_path / "pairs.spm")
    learn(tmp_path, "bytes", ENGLISH, 330, byte_fallback=True)
    with pytest.raises(UsageError, match="in bytes"):
        read_pieces(tmp_path / "bytes.spm")


def test_the_scores_are_those_of_the_library(folder: Path) -> None:
    own = read_pieces(folder / "source.spm")
    library = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    for number in range(library.get_piece_size()):
        if not library.is_control(number):
            assert own.scores[library.id_to_piece(number)] == pytest.approx(library.get_score(number))
