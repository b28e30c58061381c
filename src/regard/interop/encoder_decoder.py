"""What the encoder-decoders of Hugging Face have in common: a translator with one vocabulary."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.data.pairs import PairsSpec
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.interop.family import Family, Offered, Vocabulary
from regard.interop.hugging_face_files import CONFIG, GENERATION, to_json
from regard.interop.hugging_face_tokenizers import Frame, read_framed, write_framed
from regard.interop.saying import differences
from regard.models.sequence_to_sequence import SequenceToSequenceSpec
from regard.recipes.system import SystemSpec
from regard.recipes.translation import translation
from regard.tasks.transduction import TransductionSpec
from regard.training.optimisation import AdamW

_DEFAULT_LENGTH = 512


class EncoderDecoder(Family):
    architecture: str

    @abstractmethod
    def model(self, config: Mapping[str, Any], biased: bool, where: Path) -> SequenceToSequenceSpec:
        """The model that a config describes; ``biased``: with a bias for each word of the vocabulary."""

    @abstractmethod
    def described(self, model: dict[str, Any]) -> dict[str, Any]:
        """The fields of a config that describe a model, given as its leaves; some may be wrong."""

    has_bias: bool
    """Its weights have a bias for each word of the vocabulary."""
    kinds = ("sequence_to_sequence",)

    # In

    def vocabulary(self, offered: Offered) -> Vocabulary:
        """What is written begins after a token that the config names."""
        tokenizer, frame, where = read_framed(offered.folder, offered.config)
        if frame.back != (tokenizer.end,) or len(frame.front) > 1:
            raise UsageError(
                f"{where}: puts {frame.front} and {frame.back} around every text; regard knows the end token "
                f"({tokenizer.end}) after it, and one token before it at most"
            )
        tokenizer.marks = tokenizer.marks._replace(begin=self.begin(offered, tokenizer.pad))
        return Vocabulary(tokenizer, bool(frame.front))

    def begin(self, offered: Offered, pad: int) -> int:
        start = offered.config.get("decoder_start_token_id", offered.config.get("pad_token_id"))
        return start if isinstance(start, int) else pad

    def system(self, offered: Offered, vocabulary: Vocabulary) -> SystemSpec:
        tokenizer, opened, reads = vocabulary
        spec = TokenizerSpec(unit="imported", size=tokenizer.size)
        model = self.model(offered.config, self.has_bias, offered.folder / CONFIG)
        system = translation(model, peak=1e-4, warmup=100, optimiser=AdamW(weight_decay=0.01))
        data = PairsSpec(source=spec, target=spec, joint=reads is None, batch_tokens=2048)
        front = read_framed(offered.folder, offered.config)[1].front if opened else ()
        task = TransductionSpec(opening=front[0] if front else None)
        return system.model_copy(update={"data": data, "task": task})

    # Out

    def config(self, system: SystemSpec, tokenizer: Tokenizer) -> dict[str, Any]:
        return {
            "architectures": [self.architecture],
            "is_encoder_decoder": True,
            "vocab_size": tokenizer.size,
            **self.described(dict(system.model.paths())),
            "decoder_start_token_id": tokenizer.begin,
            "bos_token_id": tokenizer.begin,
            "eos_token_id": tokenizer.end,
            "pad_token_id": tokenizer.pad,
            "forced_eos_token_id": None,
            "dtype": "float32",
        }

    def differences(self, system: SystemSpec, config: Mapping[str, Any]) -> list[str]:
        # Read back, it must be the same model.
        biased = bool(system.model.paths().get("decoder.head.bias")) and self.has_bias
        return differences(self.model(config, biased, Path(CONFIG)), system.model, self.title)

    def files(self, system: SystemSpec, tokenizer: Tokenizer, config: Mapping[str, Any]) -> dict[str, bytes]:
        opening, longest = system.task.to_dict().get("opening"), config.get("max_position_embeddings")
        frame = Frame(() if opening is None else (int(str(opening)),), (tokenizer.end,))
        return {
            GENERATION: to_json(_generation(system, config)),
            **write_framed(tokenizer, frame, tokenizer.begin, longest),
        }


def _generation(system: SystemSpec, config: Mapping[str, Any]) -> dict[str, Any]:
    """Unless it is told otherwise, ``generate`` searches as the run does."""
    names = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id")
    search = system.search.to_dict()
    size = search.get("size", 1)
    beam = {"early_stopping": True, "length_penalty": search["alpha"]} if size != 1 else {}
    return {
        **{name: config[name] for name in names},
        "num_beams": size,
        **beam,
        "max_length": config.get("max_position_embeddings") or _DEFAULT_LENGTH,
    }


def without_copies(
    stored: Mapping[str, Tensor], first: str, copies: tuple[str, ...], where: Path
) -> dict[str, Tensor]:
    """One table of tokens, whatever names it was saved under."""
    found = dict(stored)
    names = [name for name in (first, *copies) if name in found]
    for name in names[1:]:
        if not torch.equal(found[names[0]], found[name]):
            raise DataError(f"{name} differs from {names[0]}; regard reads models with one table", file=where)
    if names:
        table = found[names[0]]
        for name in names:
            del found[name]
        found[first] = table
    return found


def put(values: Any, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for key in way:
        values = values[int(key)] if isinstance(values, list) else values[key]
    values[last] = value


def asked(config: Mapping[str, Any], name: str, usual: Any, kind: type, where: Path) -> Any:
    value = config.get(name, usual)
    if value is None:
        value = usual
    if not isinstance(value, kind) and not (kind is float and isinstance(value, int)):
        raise DataError(f"expected {kind.__name__}, got {value!r}", file=where, field=name)
    return kind(value)


def word(table: Mapping[str, str], value: Any, name: str, where: Path) -> str:
    """Theirs to ours."""
    if value not in table:
        raise UsageError(f"{where}: {name} is {value!r}; regard knows {', '.join(table)}")
    return table[value]


def their_word(table: Mapping[str, str], value: Any) -> str:
    """Ours to theirs; what they have none for becomes the first, and is told apart later."""
    return next((theirs for theirs, ours in table.items() if ours == value), next(iter(table)))
