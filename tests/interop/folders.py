"""Small GPT-2 folders as transformers saves them, made on the spot: nothing is ever fetched."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

END = "<|endoftext|>"
SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.",
    "A language model reads what was written and says what may come next.",
    "Once upon a time there was a model that had read too much; it wrote and wrote.",
    "Numbers like 1979 and 42 are words too, aren't they? They're read digit by digit.",
]
ODD_TEXTS = [
    "",
    " ",
    "the",
    " the",
    "  the  lazy   dog ",
    "line\nline\n\nline\r\n\ttab",
    "naïve café 🙂🙃 日本語 Ж",
    "a<|endoftext|>b",
    "don't they're 1979-42",
    "\u00a0x\u2028y",
]


def library_tokenizer(size: int = 330) -> LibraryTokenizer:
    """Byte-level merges with the mark last, as GPT-2 has it."""
    inner = LibraryTokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator(
        SENTENCES, trainers.BpeTrainer(vocab_size=size - 1, initial_alphabet=alphabet, show_progress=False)
    )
    inner.add_special_tokens([END])
    return inner


def tokenizer(inner: LibraryTokenizer | None = None) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=inner or library_tokenizer(), bos_token=END, eos_token=END, unk_token=END
    )


def config(**changes: Any) -> GPT2Config:
    end = library_tokenizer().token_to_id(END)
    shape: dict[str, Any] = {
        "vocab_size": end + 1,
        "n_positions": 37,
        "n_embd": 24,
        "n_layer": 3,
        "n_head": 4,
        "bos_token_id": end,
        "eos_token_id": end,
    }
    return GPT2Config(**shape | changes)


def model(seed: int = 1, **changes: Any) -> GPT2LMHeadModel:
    """Weights far from zero, norms and biases too, so that each of them matters."""
    torch.manual_seed(seed)
    made = GPT2LMHeadModel(config(**changes)).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    return made


def saved(folder: Path, seed: int = 1, max_shard_size: str = "1GB", **changes: Any) -> Path:
    model(seed, **changes).save_pretrained(folder, max_shard_size=max_shard_size)
    tokenizer().save_pretrained(folder)
    return folder


def change_json(path: Path, **changes: Any) -> None:
    values = json.loads(path.read_text(encoding="utf-8"))
    values = {name: value for name, value in (values | changes).items() if value is not ...}
    path.write_text(json.dumps(values), encoding="utf-8")


def loaded(folder: Path) -> tuple[Any, Any]:
    """As anyone would."""
    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def generated(theirs: Any, words: Any, prompts: list[str], tokens: int) -> list[str]:
    """Greedy continuations of a batch, padded on the left as transformers wants it."""
    words.pad_token, words.padding_side = words.pad_token or words.eos_token, "left"
    batch = words(prompts, return_tensors="pt", padding=True)
    with torch.no_grad():
        ids = theirs.generate(
            **batch, do_sample=False, max_new_tokens=tokens, pad_token_id=words.pad_token_id
        )
    return list(words.batch_decode(ids[:, batch["input_ids"].shape[1] :], skip_special_tokens=True))
