"""What a model looked at while it read one source and wrote one target.

A trace is plain data: it needs no model to be stored, drawn or compared. In JSON it is ::

    {"format": "regard.trace", "version": 1,
     "source": ["3", "▁mai", "⟨end⟩"], "target": ["0", "5"], "ended": true,
     "log_probs": [-0.1, -0.2, -0.01],                       one per prediction
     "attentions": [{"name": "decoder.stack.layers.0.mixers.1", "part": "decoder", "layer": 0, "mixer": 1,
                     "looks_at": "memory", "heads": 4,
                     "rows": ["0", "5", "⟨end⟩"], "columns": ["3", "▁mai", "⟨end⟩"],
                     "weights": {"encoding": "float32", "shape": [4, 3, 3], "data": "…"}}]}

(``packing`` says how weights are written.) Readers pass over fields they do not know; ``version`` grows when
the meaning of a field changes.

Row t of a decoder has read the tokens before t and predicts token t. It bears the name of the token it
PREDICTS: rows are the target and ⟨end⟩. Columns are what it may look at: the source for a memory, and for the
sequence itself what has been read, ⟨begin⟩ (or the first token, where nothing stands before it) and the
target. Layers, mixers and heads count from 0, as module names do.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias, cast

import torch
from torch import Tensor, nn

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from regard.core.tape import Tape
from regard.inspection.packing import Encoding, Weights, pack, unpack
from regard.objectives.forcing import Reader
from regard.tasks.answers import END
from regard.tasks.task import Written

FORMAT = "regard.trace"
VERSION = 1
BEGIN = "⟨begin⟩"

Looks: TypeAlias = Literal["itself", "memory"]


@dataclass(frozen=True, eq=False)
class Attention:
    """One use of one attention: who looked (rows) at whom (columns), head by head."""

    name: str
    """Of the module, as ``model.named_modules()`` gives it."""
    part: str
    """The first word of the name: encoder, decoder."""
    layer: int
    mixer: int
    """Place within the layer."""
    looks_at: Looks
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    weights: Weights

    @property
    def heads(self) -> int:
        return int(self.weights.shape[0])

    def to_dict(self, encoding: Encoding = "float32") -> dict[str, Any]:
        return {
            "name": self.name,
            "part": self.part,
            "layer": self.layer,
            "mixer": self.mixer,
            "looks_at": self.looks_at,
            "heads": self.heads,
            "rows": list(self.rows),
            "columns": list(self.columns),
            "weights": pack(self.weights, encoding),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Attention":
        rows, columns, weights = tuple(values["rows"]), tuple(values["columns"]), unpack(values["weights"])
        if weights.shape[1:] != (len(rows), len(columns)):
            raise DataError(
                f"{len(rows)} rows and {len(columns)} columns are named, but weights are {weights.shape}",
                field=f"attentions: {values['name']}",
            )
        names = {name: values[name] for name in ("name", "part", "layer", "mixer", "looks_at")}
        return cls(**names, rows=rows, columns=columns, weights=weights)


@dataclass(frozen=True, eq=False)
class Trace:
    source: tuple[str, ...]
    """Every token that was read, its end included where the model reads one."""
    target: tuple[str, ...]
    """Every token that was written, without begin and end."""
    ended: bool
    """Whether the end was among the predictions; an output that was cut off has none."""
    log_probs: tuple[float, ...]
    """Of each prediction, given the source and all before it."""
    attentions: tuple[Attention, ...]

    @property
    def predictions(self) -> tuple[str, ...]:
        """Names of the decoder's rows: the target and, if it came to that, its end."""
        return (*self.target, END) if self.ended else self.target

    def looking_at(self, what: Looks, part: str) -> list[Attention]:
        return [seen for seen in self.attentions if seen.looks_at == what and seen.part == part]

    def to_dict(self, encoding: Encoding = "float32") -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "source": list(self.source),
            "target": list(self.target),
            "ended": self.ended,
            "log_probs": list(self.log_probs),
            "attentions": [seen.to_dict(encoding) for seen in self.attentions],
        }

    def to_json(self, encoding: Encoding = "float32") -> str:
        return json.dumps(self.to_dict(encoding), ensure_ascii=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "trace") -> "Trace":
        if (values.get("format"), values.get("version")) != (FORMAT, VERSION):
            found = f"{values.get('format')!r} version {values.get('version')!r}"
            raise DataError(f"expected {FORMAT!r} version {VERSION}, got {found}", file=where)
        try:
            return cls(
                source=tuple(values["source"]),
                target=tuple(values["target"]),
                ended=values["ended"],
                log_probs=tuple(float(value) for value in values["log_probs"]),
                attentions=tuple(Attention.from_dict(seen) for seen in values["attentions"]),
            )
        except KeyError as missing:
            raise DataError(f"the field {missing} is missing", file=where) from None

    @classmethod
    def from_json(cls, text: str, where: str = "trace") -> "Trace":
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise DataError(f"not JSON: {error.msg}", file=where, line=error.lineno) from None
        if not isinstance(values, dict):
            raise DataError("expected a JSON object", file=where)
        return cls.from_dict(values, where)


# ---------------------------------------------------------------- making one


def trace_writing(model: nn.Module, written: Written) -> Trace:
    """Let ``model`` read, write what was written again, and record everything it looks at.

    What was written is read whole; by the chunk law that equals writing it token by token.
    """
    if not written.ids:
        return _trace_reading(model, written)
    rows = _named(written.pieces, len(written.ids) - 1)
    reader = cast(Reader, model)
    device = next(chain(model.parameters(), model.buffers())).device
    ids = torch.tensor([written.ids], dtype=torch.long, device=device)
    with torch.no_grad(), _at_rest(model):
        with Tape(model) as reading:
            state = written.start()
        with Tape(model) as writing:
            hidden, _ = reader.read(Tokens.whole(ids[:, :-1]), state)
        log_probs = reader.predict(hidden).float().log_softmax(-1)
    chosen = log_probs[0].gather(-1, ids[0, 1:, None])[:, 0]

    read, before = tuple(written.read), (written.first or BEGIN, *rows[:-1])
    return Trace(
        source=read,
        target=tuple(written.pieces),
        ended=len(rows) > len(written.pieces),
        log_probs=tuple(chosen.tolist()),
        attentions=(
            *_attentions(model, reading, read, {"itself": read, "memory": read}),
            *_attentions(model, writing, rows, {"itself": before, "memory": read}),
        ),
    )


def _trace_reading(model: nn.Module, written: Written) -> Trace:
    """Of an answer that is read off at once."""
    with torch.no_grad(), _at_rest(model), Tape(model) as reading:
        written.start()
    read = tuple(written.read)
    attentions = tuple(_attentions(model, reading, read, {"itself": read, "memory": read}))
    return Trace(read, tuple(written.pieces), False, written.log_probs, attentions)


def _named(pieces: Sequence[str], tokens: int) -> tuple[str, ...]:
    """A name for every token: its piece, and ⟨end⟩ for one more."""
    if tokens < 1:
        raise UsageError("there is nothing to look at: nothing was written")
    if tokens - len(pieces) not in (0, 1):
        raise UsageError(f"{tokens} tokens, but {len(pieces)} pieces: expected one each, and perhaps an end")
    return (*pieces, END)[:tokens]


@contextmanager
def _at_rest(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; afterwards every module is as it was."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _attentions(
    model: nn.Module, tape: Tape, rows: tuple[str, ...], columns: Mapping[str, tuple[str, ...]]
) -> Iterator[Attention]:
    """What ``tape`` saw, one per use of an attention, in the order of module names."""
    uses: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if getattr(module, "looks_at", None) is not None:
            uses.setdefault(module, []).append(name)
    found = []
    for module, names in uses.items():
        seen = tape.records.get(f"{names[0]}.weights")
        if seen is None:
            continue
        # Layers that share their weights are one module under several names, called once for each.
        for name, weights in zip(names, _joined(seen, len(rows)), strict=True):
            looks_at = cast(Looks, module.looks_at)
            found.append(_attention(name, looks_at, rows, columns[looks_at], weights))
    yield from sorted(found, key=lambda attention: (attention.layer, attention.mixer))


def _joined(seen: list[Tensor], rows: int) -> list[Weights]:
    """Whole matrices, from calls that made all rows at once or from one call for each row."""
    heads = seen[0].shape[1]
    stacked = torch.cat([weights[0] for weights in seen], dim=1).float().cpu()
    return [part.numpy() for part in stacked.view(heads, -1, rows, stacked.shape[-1]).unbind(1)]


def _attention(
    name: str,
    looks_at: Looks,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    weights: Weights,
) -> Attention:
    words = name.split(".")
    numbers = [int(word) for word in words if word.isdecimal()] + [0, 0]
    return Attention(name, words[0], numbers[0], numbers[1], looks_at, rows, columns, weights)
