"""A look: complete, small, and the same whatever it is asked through."""

import json

import torch

from regard.core.sequences import Tokens
from regard.inspection.look import Look, Question
from regard.inspection.trace import Trace, trace_writing
from regard.recipes.catalogue import recipe
from regard.tasks.answers import Answer
from regard.tasks.task import Written

LENGTH = 40


def test_forty_tokens_of_four_layers_and_heads_take_less_than_two_megabytes_with_all_steps() -> None:
    torch.manual_seed(0)
    model = recipe("transformer_tiny").model.build({"source": 64, "target": 64}).eval()
    pieces = [f"▁word{number}" for number in range(LENGTH - 1)]
    ids = torch.arange(4, 4 + LENGTH)
    written = Written(
        lambda: model.start(Tokens.whole(ids[None])),  # type: ignore[operator]
        [*pieces, "⟨end⟩"],
        [2, *ids.tolist()[:-1], 3],
        pieces,
    )
    trace = trace_writing(model, written, steps=True, names=lambda some: [str(one) for one in some])
    assert {(seen.part, seen.layer, seen.heads) for seen in trace.attentions} >= {("decoder", 3, 4)}
    said = Look(Question("x"), Answer("x"), trace, {}).to_dict()
    text = json.dumps(said, ensure_ascii=False)
    assert len(text.encode()) < 2_000_000
    again = Trace.from_dict(json.loads(text)["trace"])
    assert (again.top, again.names, again.log_probs) == (trace.top, trace.names, trace.log_probs)
    assert said["views"]["source_rollout"]["rows"] == [*pieces, "⟨end⟩"]
    assert len(said["trace"]["attentions"][0]["deeds"]) == 4
