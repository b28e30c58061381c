"""A translator as two graphs for onnxruntime: one reads a source, one takes a step; state in, state out.

    reader.onnx   source, real        → state_0 … state_n
    step.onnx     token, state_0 …    → log_probs, state_0 …

Batch and lengths are free. Any search that knows ``step(token, state) → (log_probs, state)`` can use them.
"""

import io
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.core.state import State, tensors_of, with_tensors
from regard.data.lexicon import Lexicon
from regard.interop.aside import written_aside
from regard.interop.hugging_face_files import to_json
from regard.models.model import ModelSpec
from regard.training.durable import write_synced

READER, STEP, FACTS = "reader.onnx", "step.onnx", "graphs.json"
_OPSET = 18
_MIXER = re.compile(r"\.mixers\.\d+\.kind$")
_TRACED = ("attention", "memory_attention", "pointwise")
"""What does the same whatever the lengths; a recurrence is traced for the lengths at hand."""


class Reading(nn.Module):
    """From a source to a state in which nothing has been written yet."""

    def __init__(self, model: Any, form: State) -> None:
        super().__init__()
        self.model, self.form = model, form

    def forward(self, source: Tensor, real: Tensor) -> tuple[Tensor, ...]:
        state = self.model.start(Tokens(source, real))
        return tuple(_opened(state, self.form, source.shape[0]))


class Stepping(nn.Module):
    def __init__(self, model: Any, form: State) -> None:
        super().__init__()
        self.model, self.form = model, form

    def forward(self, token: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        log_probs, after = self.model.step(token, with_tensors(self.form, state))
        return (log_probs, *tensors_of(after))


def _opened(start: State, form: State, batch: Any) -> Iterator[Tensor]:
    """A state as it is after a step, but empty where a model knows nothing before the first."""
    if start is None:
        for tensor in tensors_of(form):  # grows along its last axis but one: keys, values, inputs
            yield tensor.new_zeros((batch, *tensor.shape[1:-2], 0, tensor.shape[-1]))
    elif isinstance(start, Tensor):
        yield start
    else:
        pairs = (
            [(start[key], form[key]) for key in start]
            if isinstance(start, Mapping)
            else zip(start, form, strict=True)
        )
        for one, other in pairs:
            yield from _opened(one, other, batch)


def export_graphs(spec: ModelSpec, model: nn.Module, lexicon: Lexicon, target: Path) -> None:
    if (kind := spec.kind()) != "sequence_to_sequence":
        raise UsageError(f"graphs are written for translators (sequence_to_sequence), not for a {kind!r}")
    for path, value in spec.paths().items():
        if _MIXER.search(path) and value not in _TRACED:
            raise UsageError(f"model.{path} is {value!r}: graphs are written of {', '.join(_TRACED)}")
        if path.endswith("norm.kind") and value == "rms":
            raise UsageError(f"model.{path} is {value!r}: graphs have only layer norms")
    if find_spec("onnx") is None:
        raise UsageError('graphs need a package that is not installed: pip install "regard[onnx]"')
    reader, step, names = graphs(model)
    source, written = lexicon["source"], lexicon["target"]
    facts = {
        "state": names,
        "begin": written.begin,
        "end": written.end,
        "source_end": source.end,
        "padding": source.pad,
        "vocabulary": written.size,
    }
    with written_aside(target) as aside:
        for name, content in {READER: reader, STEP: step, FACTS: to_json(facts), **lexicon.files()}.items():
            write_synced(aside / name, content)


@torch.no_grad()
def graphs(model: Any) -> tuple[bytes, bytes, list[str]]:
    """Both graphs, and what the parts of the state are called."""
    small, large = _after(model, 2, 3, 1), _after(model, 3, 5, 2)
    form = model.step(torch.tensor([4, 4]), model.start(_source(2, 3)))[1]
    shapes = [
        [axis for axis, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)) if a != b]
        for one, other in zip(small, large, strict=True)
    ]
    names = [f"state_{number}" for number in range(len(shapes))]
    source = _source(3, 5)
    reading = _traced(
        Reading(model, form),
        (source.ids, source.real),
        ["source", "real"],
        names,
        {"source": [0, 1], "real": [0, 1], **dict(zip(names, shapes, strict=True))},
    )
    after = [f"next_{name}" for name in names]
    axes = dict(zip([*names, *after], [*shapes, *shapes], strict=True))
    stepping = _traced(
        Stepping(model, form),
        (torch.tensor([4, 5, 6]), *large),
        ["token", *names],
        ["log_probs", *after],
        {"token": [0], "log_probs": [0], **axes},
    )
    return reading, stepping, names


def _source(batch: int, length: int) -> Tokens:
    """One row shorter than the others, so that padding is part of what is traced."""
    real = torch.ones(batch, length, dtype=torch.bool)
    real[0, -1] = False
    return Tokens(torch.full((batch, length), 4), real)


def _after(model: Any, batch: int, length: int, steps: int) -> list[Tensor]:
    state = model.start(_source(batch, length))
    for _ in range(steps):
        _, state = model.step(torch.full((batch,), 4), state)
    return tensors_of(state)


def _traced(
    module: nn.Module,
    given: tuple[Tensor, ...],
    inputs: Sequence[str],
    outputs: Sequence[str],
    free: Mapping[str, Sequence[int]],
) -> bytes:
    written = io.BytesIO()
    with _quietly():
        torch.onnx.export(
            module.eval(),
            given,
            written,  # type: ignore[arg-type]  # the tracing exporter writes into a buffer too
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={name: {axis: f"{name}_{axis}" for axis in axes} for name, axes in free.items()},
            opset_version=_OPSET,
            dynamo=False,
        )
    return written.getvalue()


@contextmanager
def _quietly() -> Iterator[None]:
    """A trace warns of every number that it takes for fixed; which are free was found out beforehand."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
