"""What a model looked at while it read one source and wrote one target.

A trace is plain data: it needs no model to be stored, drawn or compared. In JSON it is ::

    {"format": "regard.trace", "version": 1,
     "source": ["3", "▁mai", "⟨end⟩"], "target": ["0", "5"], "ended": true,
     "log_probs": [-0.1, -0.2, -0.01],                       one per prediction
     "attentions": [{"name": "decoder.stack.layers.0.mixers.1", "part": "decoder", "layer": 0, "mixer": 1,
                     "looks_at": "memory", "heads": 4,
                     "rows": ["0", "5", "⟨end⟩"], "columns": ["3", "▁mai", "⟨end⟩"],
                     "weights": {"encoding": "float32", "shape": [4, 3, 3], "data": "…"}}]}

(``packing`` says how weights are written; docs/trace.md tells of every field.) Readers pass over fields they
do not know; ``version`` grows when the meaning of a field changes.

Row t of a decoder has read the tokens before t and predicts token t. It bears the name of the token it
PREDICTS: rows are the target and ⟨end⟩. Columns are what it may look at: the source for a memory, and for the
sequence itself what has been read, ⟨begin⟩ (or the first token, where nothing stands before it) and the
target. Layers, mixers and heads count from 0, as module names do.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.errors import DataError, UsageError
from regard.core.sequences import Tokens
from regard.core.tape import Edit, Tape
from regard.inspection.packing import Encoding, Weights, pack, unpack
from regard.objectives.forcing import Reader
from regard.tasks.answers import END
from regard.tasks.task import Written

FORMAT = "regard.trace"
VERSION = 1
BEGIN = "⟨begin⟩"

MARKS = frozenset({BEGIN, END, "<s>", "</s>", "<pad>", "[CLS]", "[SEP]", "<|endoftext|>"})
"""Tokens that are no text."""
TOP = 5
"""Tokens that are told for every prediction, the most probable ones."""

Looks: TypeAlias = Literal["itself", "memory"]


class Steps(NamedTuple):
    """What weights were made of, head by head."""

    queries: Weights
    """A row for each that looks."""
    keys: Weights
    """As the score compares them (``Score.prepare``); a row for each that is looked at."""
    values: Weights
    scores: Weights
    """Before the mask and the softmax, positions felt in them."""
    allowed: Weights
    """1 where a row may look, 0 where it may not."""

    def to_dict(self, encoding: Encoding = "float16") -> dict[str, Any]:
        numbers = {name: pack(getattr(self, name), encoding) for name in self._fields[:-1]}
        return numbers | {"allowed": pack(self.allowed, "uint8")}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Steps":
        return cls(*(unpack(values[name]) for name in cls._fields))


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
    score: str = ""
    """The formula that compares a query with a key."""
    scale: float | None = None
    """Where the score is scale · q·k."""
    steps: Steps | None = None

    @property
    def heads(self) -> int:
        return int(self.weights.shape[0])

    def to_dict(self, encoding: Encoding = "float32") -> dict[str, Any]:
        steps = dict[str, Any]()
        if self.steps is not None:  # then weights are to be reckoned with, not only to be seen
            encoding = "float16" if encoding == "uint8" else encoding
            steps["steps"] = self.steps.to_dict(encoding)
        return steps | {
            "name": self.name,
            "part": self.part,
            "layer": self.layer,
            "mixer": self.mixer,
            "looks_at": self.looks_at,
            "heads": self.heads,
            "rows": list(self.rows),
            "columns": list(self.columns),
            "score": self.score,
            "scale": self.scale,
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
        names |= {name: values[name] for name in ("score", "scale") if name in values}
        steps = Steps.from_dict(values["steps"]) if "steps" in values else None
        return cls(**names, rows=rows, columns=columns, weights=weights, steps=steps)


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
    top: tuple[tuple[tuple[str, float], ...], ...] = ()
    """For each prediction the most probable tokens with their log-probabilities."""
    names: tuple[str, ...] = ()
    """Of every value that passed a tape, and can be changed there."""

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
            "top": [[list(pair) for pair in pairs] for pairs in self.top],
            "names": list(self.names),
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
                top=tuple(tuple((name, float(p)) for name, p in some) for some in values.get("top", ())),
                names=tuple(values.get("names", ())),
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


def trace_writing(
    model: nn.Module,
    written: Written,
    edits: Mapping[str, Edit] | None = None,
    steps: bool = False,
    names: Callable[[Sequence[int]], list[str]] | None = None,
) -> Trace:
    """Let ``model`` read, write what was written again, and record everything it looks at.

    What was written is read whole; by the chunk law that equals writing it token by token. ``edits`` change
    what passes the tape, ``steps`` keeps what weights were made of, ``names`` gives tokens their pieces.
    """
    read = tuple(written.read)
    if not written.ids:
        with torch.no_grad(), _at_rest(model), Tape(model, edits) as tape:
            written.start()
        seen = tuple(_attentions(model, tape.records, read, {"itself": read, "memory": read}, steps))
        return Trace(
            read, tuple(written.pieces), False, written.log_probs, seen, names=tuple(sorted(tape.records))
        )
    rows = _named(written.pieces, len(written.ids) - 1)
    reader = cast(Reader, model)
    device = next(chain(model.parameters(), model.buffers())).device
    ids = torch.tensor([written.ids], dtype=torch.long, device=device)
    with torch.no_grad(), _at_rest(model), Tape(model, edits) as tape:
        state = written.start()
        reading = {name: list(seen) for name, seen in tape.records.items()}
        hidden, _ = reader.read(Tokens.whole(ids[:, :-1]), state)
        log_probs = reader.predict(hidden).float().log_softmax(-1)[0]
    writing = {name: seen[len(reading.get(name, ())) :] for name, seen in tape.records.items()}
    before = (written.first or BEGIN, *rows[:-1])
    return Trace(
        source=read,
        target=tuple(written.pieces),
        ended=len(rows) > len(written.pieces),
        log_probs=tuple(log_probs.gather(-1, ids[0, 1:, None])[:, 0].tolist()),
        attentions=(
            *_attentions(model, reading, read, {"itself": read, "memory": read}, steps),
            *_attentions(model, writing, rows, {"itself": before, "memory": read}, steps),
        ),
        top=() if names is None else _top(log_probs, names),
        names=tuple(sorted(tape.records)),
    )


def _top(
    log_probs: Tensor, names: Callable[[Sequence[int]], list[str]]
) -> tuple[tuple[tuple[str, float], ...], ...]:
    best = log_probs.topk(min(TOP, log_probs.shape[-1]), dim=-1)
    return tuple(
        tuple(zip(names(ids), values, strict=True))
        for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )


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


def uses_of(
    model: nn.Module, records: Mapping[str, list[Tensor]], last: str
) -> Iterator[tuple[str, nn.Module, list[Tensor]]]:
    """Every use of a module that showed a value called ``last``: its name, itself, and what it showed.

    Layers that share their weights are one module under several names, called once for each.
    """
    names: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    for module, own in names.items():
        seen = records.get(f"{own[0]}.{last}")
        if seen:
            each = len(seen) // len(own)
            for number, name in enumerate(own):
                yield name, module, seen[number * each : (number + 1) * each]


def _attentions(
    model: nn.Module,
    records: Mapping[str, list[Tensor]],
    rows: tuple[str, ...],
    columns: Mapping[str, tuple[str, ...]],
    steps: bool,
) -> Iterator[Attention]:
    """What a tape saw, one per use of an attention, in the order of module names."""
    made_of = {
        last: {name: seen for name, _, seen in uses_of(model, records, last)}
        for last in (Steps._fields if steps else ())
    }
    found = []
    for name, module, seen in uses_of(model, records, "weights"):
        looks_at = cast(Looks | None, getattr(module, "looks_at", None))
        if looks_at is not None:
            own = {last: uses[name] for last, uses in made_of.items() if name in uses}
            found.append(_attention(name, module, looks_at, rows, columns[looks_at], _rows(seen), own))
    yield from sorted(found, key=lambda attention: (attention.layer, attention.mixer))


def _rows(seen: list[Tensor]) -> Weights:
    """A whole matrix for each head, from one call that made all rows or from one call for each row."""
    widest = max(part.shape[-1] for part in seen)
    padded = [torch.nn.functional.pad(part[0].float(), (0, widest - part.shape[-1])) for part in seen]
    array: Weights = torch.cat(padded, dim=1).cpu().numpy()
    return array


def _attention(
    name: str,
    module: nn.Module,
    looks_at: Looks,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    weights: Weights,
    own: Mapping[str, list[Tensor]],
) -> Attention:
    words = name.split(".")
    numbers = [int(word) for word in words if word.isdecimal()] + [0, 0]
    score, steps = getattr(module, "score", None), None
    if own:
        steps = Steps(
            _rows(own["queries"]),
            _rows(own["keys"][-1:]),
            _rows(own["values"][-1:]),
            _rows(own["scores"]),
            _rows(own["allowed"]) if "allowed" in own else np.ones_like(weights),
        )
    return Attention(
        name,
        words[0],
        numbers[0],
        numbers[1],
        looks_at,
        rows,
        columns,
        weights,
        getattr(score, "formula", ""),
        getattr(score, "scale", None),
        steps,
    )
