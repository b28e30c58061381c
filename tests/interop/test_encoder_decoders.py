"""Marian, BART and T5: folders of transformers as runs, and runs as folders; the same logits and texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from regard.apps.exchange import export_run, import_run
from regard.apps.session import Run, load
from regard.apps.training import train
from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from regard.parts.positions import NoPairPositionSpec, NoPositionSpec, RotarySpec, SinusoidalSpec
from regard.search.beam import BeamSpec
from regard.search.greedy import GreedySpec
from tests.apps.conftest import Command
from tests.apps.toys import toy
from tests.engines.small import LINES, run_of, system
from tests.interop import folders

SIZE, LONGEST = 150, 40
TEXTS = [*folders.SENTENCES, "the lazy dog", "numbers", "A model reads", "what was written?"]
SHAPE = {
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 40,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "max_position_embeddings": LONGEST,
    "scale_embedding": True,
    "activation_function": "swish",
}
COMMON = {"vocab_size": SIZE + 3, "eos_token_id": 2, "pad_token_id": 1, "bos_token_id": 0}
NETWORK = {"d_model": 16, "d_kv": 4, "num_heads": 4, "d_ff": 20, "num_layers": 3, "num_decoder_layers": 2}


def marian() -> Any:
    return MarianMTModel(MarianConfig(**SHAPE, **COMMON, decoder_start_token_id=1, forced_eos_token_id=None))


def bart() -> Any:
    return BartForConditionalGeneration(
        BartConfig(**SHAPE, **COMMON, decoder_start_token_id=2, forced_eos_token_id=None)
    )


def t5() -> Any:
    return T5ForConditionalGeneration(T5Config(**NETWORK, **COMMON, decoder_start_token_id=1))


def gated_t5() -> Any:
    network = {**NETWORK, "feed_forward_proj": "gated-gelu", "relative_attention_num_buckets": 8}
    return T5ForConditionalGeneration(T5Config(**network, **COMMON, decoder_start_token_id=1))


FAMILIES: dict[str, Callable[[], Any]] = {"marian": marian, "bart": bart, "t5": t5, "gated t5": gated_t5}


def tokenizer(opened: bool) -> PreTrainedTokenizerFast:
    inner = LibraryTokenizer(models.BPE(unk_token="<unk>"))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    inner.train_from_iterator(
        folders.SENTENCES, trainers.BpeTrainer(vocab_size=SIZE, special_tokens=specials, show_progress=False)
    )
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>" if opened else "$A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>"
    )


def sharp(made: Any, seed: int = 1) -> Any:
    """Weights far from zero, norms and biases too, so that each of them matters."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if "embed_positions" not in name or made.config.model_type == "bart":
                weight.add_(torch.randn_like(weight) * 0.2)
        if hasattr(made, "final_logits_bias"):
            made.final_logits_bias.normal_(std=0.5)
            made.final_logits_bias[0, 2] += 3.0
    return made.eval()


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("theirs") / request.param.replace(" ", "-")
    sharp(FAMILIES[request.param]()).save_pretrained(folder)
    tokenizer(opened=request.param == "bart").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("ours") / "run"
    import_run(folder, out)
    return load(out)


def loaded(folder: Path) -> tuple[Any, Any]:
    return AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def assert_same_logits(theirs: Any, words: Any, run: Run) -> None:
    batch = words(TEXTS, return_tensors="pt", padding=True)
    written = torch.randint(4, SIZE, (len(TEXTS), 9), generator=torch.Generator().manual_seed(3))
    written[:, 0] = run.lexicon["target"].begin
    model: Any = run.model
    source = Tokens(batch["input_ids"], batch["attention_mask"].bool())
    with torch.no_grad():
        expected = theirs(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], decoder_input_ids=written
        ).logits
        x, _ = model.read(Tokens.whole(written), model.start(source))
        found = model.predict(x)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def assert_same_texts(theirs: Any, words: Any, run: Run) -> None:
    batch = words(TEXTS, return_tensors="pt", padding=True)
    batch.pop("token_type_ids", None)
    for beams, search in (
        (1, GreedySpec(longest_ratio=0.0, longest_extra=12)),
        (3, BeamSpec(size=3, longest_ratio=0.0, longest_extra=12)),
    ):
        more = {"early_stopping": True, "length_penalty": 1.0} if beams > 1 else {}
        with torch.no_grad():
            ids = theirs.generate(**batch, num_beams=beams, do_sample=False, max_new_tokens=12, **more)
        texts = words.batch_decode(ids, skip_special_tokens=True)
        ours = run.answers(TEXTS, search)
        # Where a beam reaches its greatest length, each program has rules of its own.
        ended = [bool((row[1:] == run.lexicon["target"].end).any()) or beams == 1 for row in ids]
        found = [answer.text for answer in ours]
        assert [text for text, end in zip(found, ended, strict=True) if end] == [
            text for text, end in zip(texts, ended, strict=True) if end
        ]


def test_logits_and_texts_are_theirs(folder: Path, run: Run) -> None:
    theirs, words = loaded(folder)
    assert words(TEXTS[0])["input_ids"] == run._task()._encode_sources(TEXTS[:1], 1, False)[0]  # type: ignore[attr-defined]
    assert_same_logits(theirs, words, run)
    assert_same_texts(theirs, words, run)


def test_what_was_imported_teaches(run: Run, tmp_path: Path) -> None:
    """With its vocabulary, its marks and, where it expects one, its token in front."""
    pairs = [(text, text) for text in TEXTS for _ in range(4)]
    taught = train(toy("transformer_tiny"), pairs, tmp_path, valid=pairs[:3], steps=2, taught_by=[run.path])
    assert taught.run.lexicon.differs_from(run.lexicon) is None
    assert taught.run.spec.task.paths()["opening"] is None


def test_both_engines_answer_for_an_imported_run(run: Run) -> None:
    steps = load(run.path, engine="torch")
    assert run(TEXTS) == steps(TEXTS)


def test_going_out_again_gives_the_same_model(folder: Path, run: Run, tmp_path: Path) -> None:
    export_run(run.path, tmp_path / "theirs", "hf")
    before, (after, words) = AutoModelForSeq2SeqLM.from_pretrained(folder), loaded(tmp_path / "theirs")
    assert type(after) is type(before)
    assert_same_logits(after, words, run)
    assert_same_texts(after, words, run)
    mine, yours = before.state_dict(), after.state_dict()
    assert mine.keys() == yours.keys()
    for name, tensor in mine.items():
        if name.endswith("embed_positions.weight"):
            continue  # rows that nothing stands at
        torch.testing.assert_close(yours[name], tensor, atol=1e-6, rtol=1e-6)


def test_a_translator_of_ours_goes_out_as_marian(tmp_path: Path) -> None:
    """Its sinusoids stand in another order there."""
    spec = system(SinusoidalSpec(), NoPairPositionSpec(), "model.decoder.head.bias=true", pre_norm=False)
    run = run_of(spec, tmp_path / "run")
    export_run(run.path, tmp_path / "theirs", "hf")
    theirs, words = loaded(tmp_path / "theirs")
    assert type(theirs) is MarianMTModel
    batch = words(LINES, return_tensors="pt", padding=True)
    batch.pop("token_type_ids", None)
    with torch.no_grad():
        ids = theirs.generate(**batch, num_beams=1, do_sample=False, max_new_tokens=30)
    answers = run.answers(LINES, GreedySpec(longest_ratio=0.0, longest_extra=30))
    assert words.batch_decode(ids, skip_special_tokens=True) == [answer.text for answer in answers]
    assert len({answer.text for answer in answers}) > 2
    import_run(tmp_path / "theirs", tmp_path / "again")
    again = load(tmp_path / "again", engine="torch")
    assert again(LINES) == load(run.path, engine="torch")(LINES)


def test_what_no_family_has_a_word_for_is_refused_with_the_reasons(tmp_path: Path, regard: Command) -> None:
    run = run_of(system(NoPositionSpec(), RotarySpec()), tmp_path / "run", ending=False)
    done = regard("export", run.path, tmp_path / "theirs", "--to", "hf")
    assert done.code == 2
    assert "this run is no Marian: model.encoder" in done.err
    assert "rotary" in done.err
    assert not (tmp_path / "theirs").exists()


def test_what_regard_has_no_part_for_is_refused(tmp_path: Path) -> None:
    wide = T5ForConditionalGeneration(T5Config(**{**NETWORK, "d_kv": 8}, **COMMON))
    wide.save_pretrained(tmp_path)
    tokenizer(opened=False).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match=r"config.json: 4 heads of 8 \(d_kv\)"):
        import_run(tmp_path, tmp_path / "run")
    folders.change_json(tmp_path / "config.json", d_model="wide")
    with pytest.raises(DataError, match="d_model: expected int, got 'wide'"):
        import_run(tmp_path, tmp_path / "run")


def test_a_folder_for_ctranslate2_is_used_without_us(tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    run = run_of(system(NoPositionSpec(), RotarySpec()), tmp_path / "run")
    export_run(run.path, tmp_path / "theirs", "ct2")
    translator = ctranslate2.Translator(str(tmp_path / "theirs"), compute_type="float32", intra_threads=1)
    words = LibraryTokenizer.from_file(str(tmp_path / "theirs" / "tokenizer.json"))
    texts = [[*words.encode(line, add_special_tokens=False).tokens, "</s>"] for line in LINES]
    found = translator.translate_batch(texts, beam_size=1, max_decoding_length=9, min_decoding_length=0)
    answers = load(run.path, engine="torch").answers(LINES, GreedySpec(longest_ratio=0.0, longest_extra=9))
    ids = [[words.token_to_id(token) for token in one.hypotheses[0]] for one in found]
    assert [words.decode(row) for row in ids] == [answer.text for answer in answers]
    distant = "model.encoder.stack.blocks.0.mixers.0.positions.kind=distance"
    other = run_of(system(NoPositionSpec(), RotarySpec(), distant), tmp_path / "other", ending=False)
    with pytest.raises(UsageError, match=r"CTranslate2 cannot run this model: .*'distance'"):
        export_run(other.path, tmp_path / "none", "ct2")
    assert not (tmp_path / "none").exists()
