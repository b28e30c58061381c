"""Two graphs in onnxruntime find greedily what our steps find, whatever the batch."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest

from regard.apps.exchange import export_run
from regard.apps.session import Run, load
from regard.apps.training import train
from regard.core.errors import UsageError
from regard.search.greedy import GreedySpec
from tests.apps.toys import pairs, toy
from tests.engines.small import LINES, SYSTEMS, run_of

onnxruntime = pytest.importorskip("onnxruntime")
STEPS = 12


@pytest.fixture(autouse=True)
def shapes_unchecked() -> Iterator[None]:
    """While a graph is traced, sizes are tensors, which nobody else ever sees."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


RUNS: dict[str, Callable[[Path], Run]] = {
    "rotary": lambda folder: run_of(SYSTEMS["rotary"](), folder, ending=False),
    "sinusoidal": lambda folder: run_of(SYSTEMS["sinusoidal, post-norm"](), folder, ending=False),
    "learned": lambda folder: run_of(SYSTEMS["learned"](), folder, ending=False),
    "relative": lambda folder: run_of(SYSTEMS["relative"](), folder, ending=False),
}


def greedily(folder: Path, lines: list[str], run: Run) -> list[list[int]]:
    """What anyone would write who has these files and numpy."""
    reader, step = (onnxruntime.InferenceSession(folder / name) for name in ("reader.onnx", "step.onnx"))
    facts = json.loads((folder / "graphs.json").read_text())
    rows = [[*run.lexicon["source"].encode(line), facts["source_end"]] for line in lines]
    longest = max(map(len, rows))
    source = np.array([row + [facts["padding"]] * (longest - len(row)) for row in rows])
    real = np.arange(longest)[None] < np.array([len(row) for row in rows])[:, None]
    wanted = {given.name for given in reader.get_inputs()}
    given: dict[str, Any] = {"source": source, "real": real}
    state = reader.run(None, {name: value for name, value in given.items() if name in wanted})
    token, written = np.full(len(rows), facts["begin"]), []
    known = [given.name for given in step.get_inputs()]
    for _ in range(STEPS):
        offered = {"token": token, **dict(zip(facts["state"], state, strict=True))}
        log_probs, *state = step.run(None, {name: offered[name] for name in known})
        token = log_probs.argmax(-1)
        written.append(token)
    return [
        row[: row.index(facts["end"])] if facts["end"] in row else row for row in np.array(written).T.tolist()
    ]


@pytest.mark.parametrize("name", RUNS)
def test_graphs_find_what_our_steps_find(name: str, tmp_path: Path) -> None:
    run = RUNS[name](tmp_path / "run")
    export_run(run.path, tmp_path / "graphs", "onnx")
    answers = load(run.path, engine="torch").answers(
        LINES, GreedySpec(longest_ratio=0.0, longest_extra=STEPS)
    )
    texts = [answer.text for answer in answers]
    for some in (LINES, LINES[:1], LINES[3:5]):
        found = greedily(tmp_path / "graphs", some, run)
        first = LINES.index(some[0])
        assert [run.lexicon["target"].decode(row) for row in found] == texts[first : first + len(some)]


@pytest.mark.parametrize(
    ("recipe", "said"), [("gpt", "not for a 'language_model'"), ("luong", "is 'recurrent'")]
)
def test_what_cannot_be_traced_is_refused(recipe: str, said: str, tmp_path: Path) -> None:
    spec = toy(recipe)
    data = ["a b c d e f"] * 20 if recipe == "gpt" else pairs(40)
    train(spec, data, tmp_path / "run", valid=data[:4], steps=1, seed=1)
    with pytest.raises(UsageError, match=said):
        export_run(tmp_path / "run", tmp_path / "graphs", "onnx")
    assert not (tmp_path / "graphs").exists()
