"""BERT and its kin: masked models with their heads, and readers without one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import DataError, UsageError
from regard.data.relations import FollowingSpec, OrderSpec, RelationSpec
from regard.data.tokenizers import Tokenizer
from regard.interop.dialects import (
    ALBERT,
    BERT,
    BLOCK,
    DISTILBERT,
    ELECTRA,
    NARROW,
    ROBERTA,
    ROFORMER,
    Dialect,
)
from regard.interop.encoder_weights import (
    TYPES,
    plainly_named,
    settle_head,
    settle_lead,
    settle_types,
    turn,
    waves,
)
from regard.interop.family import Family, Offered, Vocabulary, Wanted
from regard.interop.hugging_face_files import CONFIG
from regard.interop.hugging_face_tokenizers import TOKENIZER_CONFIG, said_of_tokens
from regard.interop.reader_tokenizers import read_reader_tokenizer, write_reader_tokenizer
from regard.interop.renaming import Renamed, renamed_layer
from regard.interop.saying import WayOut, differences, gathered, to_config, to_spec, whole_number
from regard.interop.sentence_encoders import read_summing_up, write_summing_up
from regard.models.masked import MaskedModelSpec
from regard.models.model import ModelSpec
from regard.models.reader import GistSpec, ReaderSpec
from regard.parts.positions import (
    LearnedSpec,
    NoPairPositionSpec,
    NoPositionSpec,
    PairPositionSpec,
    PositionSpec,
    RotarySpec,
)
from regard.recipes.bert import bert_model, guessing
from regard.recipes.reading import reading
from regard.recipes.system import SystemSpec

_POSITIONS = "max_position_embeddings"
_LONGEST = "encoder.embedding.positions.longest"
_ROOM = 1536
"""Positions that are written down of those that have no last one, as many as RoFormer usually has."""
# What the recipes have, and some of these do not.
_LEARNED = WayOut(
    ("encoder.embedding.positions", f"{BLOCK}.mixers.0.positions"),
    ("model.encoder.embedding.positions.kind=learned", f"model.{BLOCK}.mixers.0.positions.kind=none"),
)
_UNCOMPARED = WayOut(("relation",), ("model.relation=null", "data.relation=null", "data.short=0"))


class Encoders(Family):
    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.title, self.prefix = dialect.title, dialect.prefix
        self.kinds = ("masked", "reader") if dialect.detection is None else ("masked", "reader", "detector")

    # Coming in

    def vocabulary(self, offered: Offered) -> Vocabulary:
        self._refuse_other_cuts(offered.folder)
        return read_reader_tokenizer(offered.folder, offered.config)

    def _refuse_other_cuts(self, folder: Path) -> None:
        """What such a tokenizer does first is not in the files that it saves."""
        cuts = self.dialect.cuts
        if cuts is None:
            return
        named = str(said_of_tokens(folder).get("tokenizer_class") or cuts)
        if named.removesuffix("Fast") == cuts:
            raise UsageError(
                f"{folder / TOKENIZER_CONFIG}: tokenizer_class is {named!r}, which looks for Chinese words "
                "before it cuts them (rjieba); regard cuts only by the rules that a folder holds"
            )

    def system(self, offered: Offered, vocabulary: Vocabulary) -> SystemSpec:
        where, names = offered.folder / CONFIG, set(plainly_named(self.dialect, offered.stored))
        dialect, tokenizer = self.dialect, vocabulary.tokenizer
        pooled = dialect.pooler is not None and f"{dialect.pooler}.weight" in names
        if f"{dialect.guessing.dense}.weight" not in names:
            reader = self._model(offered.config, where, "reader", pooled)
            summing, longest = read_summing_up(offered.folder)
            return reading(reader, tokenizer.size, summing, longest)  # type: ignore[arg-type]
        if tokenizer.marks.hidden is None:
            raise DataError(
                "this model guesses hidden tokens, but no mask_token stands for one in its vocabulary",
                file=offered.folder,
            )
        compared = pooled and dialect.relation is not None and f"{dialect.relation}.weight" in names
        model = self._model(offered.config, where, "compared" if compared else "masked", pooled)
        room = int(model.paths().get(_LONGEST, _ROOM))  # type: ignore[arg-type]
        relation: RelationSpec | None = OrderSpec() if dialect.shared else FollowingSpec()
        relation = relation if compared else None
        # A model that has learned already goes on at a low rate.
        return guessing(model, unit="wordpiece", relation=relation).override(  # type: ignore[arg-type]
            [
                f"data.tokenizer={{unit: imported, size: {tokenizer.size}}}",
                f"data.window={min(128, room)}",
                "training.optimiser={kind: adamw, weight_decay: 0.01, betas: [0.9, 0.999]}",
                "training.schedule.peak=1e-4",
            ]
        )

    def _model(self, config: Mapping[str, Any], where: Path, wiring: str, pooled: bool) -> ModelSpec:
        self._refuse_beyond(config, where)
        dialect = self.dialect
        width = whole_number(config, dialect.said[0].config, dialect.said[0].usual, where)
        types = whole_number(config, TYPES, 2, where) if dialect.typed else 1
        if dialect.lead is not None:
            config = {**config, NARROW: self._narrow(config, width, where)}
        positions, distances = self._places(config, where)
        masked = bert_model(
            layers=1,
            width=width,
            heads=1,
            positions=positions,
            distances=distances,
            segments=types if types > 1 else 0,
            compares=wiring == "compared",
            shared=dialect.shared,
        )
        reader = ReaderSpec(encoder=masked.encoder, gist=GistSpec() if pooled else None)
        values = (reader if wiring == "reader" else masked).to_dict()
        to_spec(dialect.said, config, values, where)
        if wiring == "reader":
            values.pop("tied", None)
            return ReaderSpec.from_dict(values, where=str(where))
        return MaskedModelSpec.from_dict(values, where=str(where))

    def _narrow(self, config: Mapping[str, Any], width: int, where: Path) -> int | None:
        """Width of the table of words, where that is another than the layers have."""
        usual = next(row.usual for row in self.dialect.said if row.config == NARROW) or width
        if config.get(NARROW, usual) is None:
            return None
        narrow = whole_number(config, NARROW, usual, where)
        return None if narrow == width else narrow

    def _places(self, config: Mapping[str, Any], where: Path) -> tuple[PositionSpec, PairPositionSpec]:
        """How it tells where a token stands: added to the input, and felt in attention."""
        if self.dialect.turned:
            return NoPositionSpec(), RotarySpec()
        longest = whole_number(config, _POSITIONS, 512, where)
        return LearnedSpec(longest=longest - self._skipped(config, where)), NoPairPositionSpec()

    def _skipped(self, config: Mapping[str, Any], where: Path) -> int:
        """Rows of the table of positions that no token stands at."""
        return whole_number(config, "pad_token_id", 1, where) + 1 if self.dialect.skips else 0

    def _refuse_beyond(self, config: Mapping[str, Any], where: Path) -> None:
        beyond = {
            "position_embedding_type": ("absolute", "positions that are felt inside attention"),
            "rotary_value": (False, "values that are turned"),
            "is_decoder": (False, "reader that sees only what came before"),
            "add_cross_attention": (False, "memory to look at"),
            "num_hidden_groups": (1, "several groups of shared layers"),
            "inner_group_num": (1, "several layers in a group"),
        }
        for field, (usual, meaning) in beyond.items():
            if config.get(field, usual) not in (usual, None):
                raise UsageError(f"{where}: {field} is {config[field]!r}: regard has no {meaning} here")

    def wanted(self, offered: Offered, system: SystemSpec) -> Wanted:
        found, dialect, left = plainly_named(self.dialect, offered.stored), self.dialect, list[str]()
        settle_head(self.dialect, found, system, offered.folder)
        known = {name for row in self.table(system) for name in row.names}
        for name in [name for name in found if name not in known]:
            outside = not name.startswith(self.prefix)
            if outside or (dialect.pooler is not None and name.startswith(f"{dialect.pooler}.")):
                left.append(name)
                del found[name]
        settle_types(self.dialect, found, offered.folder)
        if dialect.skips:
            name = f"{self.prefix}embeddings.position_embeddings.weight"
            if name in found:
                found[name] = found[name][self._skipped(offered.config, offered.folder / CONFIG) :]
        if dialect.always_leads:
            settle_lead(self.dialect, found, system, offered.folder)
        if dialect.relation is not None:
            turn(found, dialect.relation)
        return Wanted(found, left)

    # Going out

    def config(self, system: SystemSpec, tokenizer: Tokenizer) -> dict[str, Any]:
        leaves, dialect = system.model.paths(), self.dialect
        wiring = _wiring(leaves)
        config: dict[str, Any] = {
            "architectures": [dialect.architectures.get(wiring, dialect.architectures["masked"])],
            "model_type": dialect.kind,
            "vocab_size": tokenizer.size,
            **to_config(dialect.said, leaves),
            "bos_token_id": tokenizer.begin,
            "eos_token_id": tokenizer.end,
            "pad_token_id": tokenizer.pad,
            "dtype": "float32",
        }
        longest = int(leaves.get(_LONGEST, _ROOM))  # type: ignore[arg-type]
        config[_POSITIONS] = longest + (tokenizer.pad + 1 if dialect.skips else 0)
        if dialect.typed:
            config[TYPES] = leaves.get("encoder.embedding.segments", 0) or 1
        if dialect.lead is not None:
            config.setdefault(NARROW, leaves.get("encoder.embedding.width", 1))
        return config

    def differences(self, system: SystemSpec, config: Mapping[str, Any]) -> list[str]:
        leaves = system.model.paths()
        wiring = _wiring(leaves)
        allowed = wiring if wiring in self.dialect.architectures else "masked"
        pooled = self.dialect.pooler is not None and "gist.activation" in leaves
        if wiring != "detector":
            theirs = self._model(config, Path(CONFIG), allowed, pooled)
            found = differences(theirs, system.model, self.title)
            if self.dialect.turned and all(one.startswith("model.relation") for one in found):
                # No other family turns positions: what tells whether passages follow stays behind, as the
                # generator of a detector does.
                return []
            return self._with_ways_out(found)
        theirs = self._model(config, Path(CONFIG), "reader", pooled=False)
        found = differences(theirs, ReaderSpec(encoder=system.model.reader()), self.title)
        said, usual = leaves["head.activation"], leaves.get(f"{BLOCK}.mixers.1.activation")
        if said != usual:
            found.append(f"model.head.activation is {said!r}, not {usual!r}")
        return self._with_ways_out(found)

    def _with_ways_out(self, found: list[str]) -> list[str]:
        """Where the recipes have what it lacks, settings tell how to train a run that can be one."""
        dialect = self.dialect
        found = found if dialect.relation is not None else gathered(found, _UNCOMPARED)
        return found if dialect.turned else gathered(found, _LEARNED)

    def prefers(self, system: SystemSpec, tokenizer: Tokenizer) -> bool:
        leaves = system.model.paths()
        turned = leaves.get(f"{BLOCK}.mixers.0.positions.kind") == "rotary"
        if turned or self.dialect.turned:
            return turned and self.dialect.turned
        untyped = not leaves.get("encoder.embedding.segments")
        byte_level = tokenizer.spec.unit == "byte_bpe" or "Ġ" in "".join(list(tokenizer.vocabulary())[:2000])
        if self.dialect.doubled:
            return untyped and byte_level
        return untyped and not byte_level and not self.dialect.typed

    def table(self, system: SystemSpec) -> list[Renamed]:
        leaves, dialect, prefix = system.model.paths(), self.dialect, self.prefix
        rows = [
            Renamed("encoder.embedding.tokens.weight", f"{prefix}embeddings.word_embeddings.weight"),
            *renamed_layer("encoder.embedding.norm", f"{prefix}embeddings.LayerNorm"),
        ]
        if not dialect.turned:
            table = "encoder.embedding.positions.table.weight"
            rows.append(Renamed(table, f"{prefix}embeddings.position_embeddings.weight"))
        if leaves["encoder.embedding.segments"]:
            rows.append(
                Renamed(
                    "encoder.embedding.segments.weight", f"{prefix}embeddings.token_type_embeddings.weight"
                )
            )
        if leaves["encoder.embedding.table"] is not None and dialect.lead is not None:
            rows += renamed_layer("encoder.embedding.lead", dialect.lead)
        layers = 1 if dialect.shared else int(leaves[f"{BLOCK}.repeat"])  # type: ignore[arg-type]
        for number in range(layers):
            ours, names = f"encoder.stack.layers.{number}", dialect.layer
            theirs = dialect.layers.format(number)
            attention = (f"{theirs}.{name}" for name in (names.query, names.key, names.value))
            rows += [
                *renamed_layer(f"{ours}.mixers.0.project", *attention),
                *renamed_layer(f"{ours}.mixers.0.out", f"{theirs}.{names.out}"),
                *renamed_layer(f"{ours}.joins.0.norm", f"{theirs}.{names.attention_norm}"),
                *renamed_layer(f"{ours}.mixers.1.network.widen", f"{theirs}.{names.widen}"),
                *renamed_layer(f"{ours}.mixers.1.network.narrow", f"{theirs}.{names.narrow}"),
                *renamed_layer(f"{ours}.joins.1.norm", f"{theirs}.{names.norm}"),
            ]
        wiring, head = _wiring(leaves), dialect.guessing
        if wiring == "reader":
            pooled = "gist.activation" in leaves and dialect.pooler is not None
            return rows + (renamed_layer("gist.linear", dialect.pooler or "") if pooled else [])
        if wiring == "detector" and dialect.detection is not None:
            between, answer = dialect.detection
            return rows + renamed_layer("head.between", between) + renamed_layer("head.answer", answer)
        rows += [
            *renamed_layer("words.lead.linear", head.dense),
            *renamed_layer("words.lead.norm", head.norm),
            Renamed("words.words.bias", head.bias),
        ]
        if not leaves["tied"]:
            rows.append(Renamed("words.words.weight", head.words))
        if wiring == "compared" and dialect.pooler is not None and dialect.relation is not None:
            rows += renamed_layer("relation.between", dialect.pooler)
            rows += renamed_layer("relation.answers", dialect.relation)
        return rows

    def given(self, theirs: dict[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
        dialect, prefix = self.dialect, f"{self.prefix}embeddings."
        width = theirs[f"{prefix}word_embeddings.weight"].shape[1]
        if dialect.turned:
            head = config["hidden_size"] // config["num_attention_heads"]
            theirs[f"{self.prefix}encoder.embed_positions.weight"] = waves(config[_POSITIONS], head)
        else:
            positions = theirs[f"{prefix}position_embeddings.weight"]
            before = positions.new_zeros(config[_POSITIONS] - len(positions), width)
            theirs[f"{prefix}position_embeddings.weight"] = torch.cat((before, positions))
        if dialect.typed and f"{prefix}token_type_embeddings.weight" not in theirs:
            theirs[f"{prefix}token_type_embeddings.weight"] = torch.zeros(1, width)
        if dialect.always_leads and f"{dialect.lead}.weight" not in theirs:
            theirs[f"{dialect.lead}.weight"] = torch.eye(width)
            theirs[f"{dialect.lead}.bias"] = torch.zeros(width)
        if dialect.relation is not None:
            turn(theirs, dialect.relation)
        if config["architectures"] == [dialect.architectures["reader"]]:
            return {name.removeprefix(self.prefix): tensor for name, tensor in theirs.items()}
        return theirs

    def files(self, system: SystemSpec, tokenizer: Tokenizer, config: Mapping[str, Any]) -> dict[str, bytes]:
        longest = int(system.model.paths().get(_LONGEST, _ROOM))  # type: ignore[arg-type]
        typed = self.dialect.typed and config[TYPES] > 1
        found = write_reader_tokenizer(tokenizer, longest, typed, self.dialect.doubled)
        if _wiring(system.model.paths()) == "reader":
            width = int(system.model.paths()["encoder.embedding.width"])  # type: ignore[arg-type]
            cut = int(system.task.to_dict().get("longest") or longest)  # type: ignore[arg-type]
            found |= write_summing_up(system.task.summing_up(), cut, width)
        return found


def _wiring(leaves: Mapping[str, Any]) -> str:
    if any(path.startswith("generator.") for path in leaves):
        return "detector"
    if not any(path.startswith("head.") for path in leaves):
        return "reader"
    return "compared" if any(path.startswith("relation.") for path in leaves) else "masked"


ENCODERS: dict[str, Family] = {
    dialect.kind: Encoders(dialect) for dialect in (BERT, ROBERTA, ALBERT, ELECTRA, DISTILBERT, ROFORMER)
}
