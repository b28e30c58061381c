"""Small folders of BERT and its kin as transformers saves them, and as old ones look; nothing is fetched."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.",
    "A reader guesses what was hidden; it reads from both sides.",
    "Naïve cafés in Zürich aren't cheap: 42 francs!",
    "Once upon a time there was a model that had read too much.",
]
ODD_TEXTS = [
    "",
    " ",
    "the",
    "  the  lazy   dog ",
    "THE Quick",
    "naïve café ZÜRICH Ångström",
    "日本語 and 中文字",
    "tab\tline\nend\r\n\u00a0x\u200b\u2028y",
    "don't!!! (they're) 3.14-42 $5 @x #y",
    "a" * 130 + " b",
    "🙂🙃 ☃ e\u0301 \ufffd \x00 \x07",
    "unaffable untreadable readreader",
]
MARKS = {
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    "roberta": ("<pad>", "<unk>", "<s>", "</s>", "<mask>"),
}
_ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")


def pieces() -> LibraryTokenizer:
    """WordPiece as BERT has it, small letters only."""
    marks = MARKS["bert"]
    inner = LibraryTokenizer(models.WordPiece(unk_token=marks[1], max_input_chars_per_word=100))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    inner.train_from_iterator(
        SENTENCES, trainers.WordPieceTrainer(vocab_size=150, special_tokens=list(marks), show_progress=False)
    )
    inner.post_processor = processors.BertProcessing(
        (marks[3], inner.token_to_id(marks[3])), (marks[2], inner.token_to_id(marks[2]))
    )
    return inner


def byte_pieces() -> LibraryTokenizer:
    """Byte-level merges as RoBERTa has them; padding is not the first id."""
    pad, unknown, begin, end, hidden = MARKS["roberta"]
    inner = LibraryTokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=[begin, pad, end, unknown, hidden],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    inner.train_from_iterator(SENTENCES, trainer)
    inner.post_processor = processors.RobertaProcessing(
        (end, inner.token_to_id(end)), (begin, inner.token_to_id(begin)), add_prefix_space=False
    )
    return inner


class Kin(NamedTuple):
    """How a small model of a family is made."""

    config: str
    masked: str
    body: str
    sizes: dict[str, Any]
    inner: Callable[[], LibraryTokenizer] = pieces
    marks: tuple[str, ...] = MARKS["bert"]


_SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 50,
}
KIN = {
    "bert": Kin("BertConfig", "BertForMaskedLM", "BertModel", _SIZES),
    "bert_one_type": Kin("BertConfig", "BertForMaskedLM", "BertModel", _SIZES | {"type_vocab_size": 1}),
    "roberta": Kin(
        "RobertaConfig",
        "RobertaForMaskedLM",
        "RobertaModel",
        _SIZES
        | {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1, "max_position_embeddings": 150},
        byte_pieces,
        MARKS["roberta"],
    ),
    "albert": Kin("AlbertConfig", "AlbertForMaskedLM", "AlbertModel", _SIZES | {"embedding_size": 16}),
    "electra": Kin("ElectraConfig", "ElectraForMaskedLM", "ElectraModel", _SIZES | {"embedding_size": 16}),
    "electra_wide": Kin(
        "ElectraConfig", "ElectraForMaskedLM", "ElectraModel", _SIZES | {"embedding_size": 24}
    ),
    "distilbert": Kin(
        "DistilBertConfig",
        "DistilBertForMaskedLM",
        "DistilBertModel",
        {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 50},
    ),
    "roformer": Kin("RoFormerConfig", "RoFormerForMaskedLM", "RoFormerModel", _SIZES),
    "roformer_narrow": Kin(
        "RoFormerConfig", "RoFormerForMaskedLM", "RoFormerModel", _SIZES | {"embedding_size": 16}
    ),
}


def tokenizer(kin: str) -> PreTrainedTokenizerFast:
    names = dict(zip(_ROLES, KIN[kin].marks, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=KIN[kin].inner(), **names)


def model(kin: str, architecture: str | None = None, seed: int = 1, **changes: Any) -> Any:
    """Weights far from zero, norms and biases too, so that each of them matters."""
    made, words = KIN[kin], tokenizer(kin)
    torch.manual_seed(seed)
    sizes = {"vocab_size": len(words), "pad_token_id": words.pad_token_id, **made.sizes, **changes}
    config = getattr(transformers, made.config)(**sizes)
    theirs = getattr(transformers, architecture or made.masked)(config).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            if weight.requires_grad:  # RoFormer stores how it turns queries and keys beside what it learned
                weight.add_(torch.randn_like(weight) * 0.2)
    return theirs


def saved(folder: Path, kin: str, architecture: str | None = None, seed: int = 1, **changes: Any) -> Path:
    model(kin, architecture, seed, **changes).save_pretrained(folder)
    tokenizer(kin).save_pretrained(folder)
    return folder


def loaded(folder: Path, architecture: str) -> tuple[Any, Any]:
    """As anyone would."""
    theirs = getattr(transformers, architecture).from_pretrained(folder, attn_implementation="eager")
    return theirs.eval(), AutoTokenizer.from_pretrained(folder)
