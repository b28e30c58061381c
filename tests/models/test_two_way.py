"""Two directions that never meet: what each half may know, what is shared, and words by their letters."""

import math

import pytest
import torch
from torch import Tensor

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.data.text_batches import TextBatch
from regard.models.two_way import TwoWayModel, TwoWayModelSpec
from regard.objectives.both_ways import BothWaysSpec
from regard.objectives.objective import Progress
from regard.parts.spelling import spelled
from regard.recipes.elmo import two_way_model
from regard.stacks.join import PostNormSpec

SPEC = two_way_model(width=6, held=10, filters=(3, 4), letter_width=5)
WORDS = ["", "a", "be", "sea", "deal", "e", "fab", "go", "hi"]


def build(spec: TwoWayModelSpec = SPEC) -> TwoWayModel:
    torch.manual_seed(1)
    return spec.build({"text": len(WORDS)}).eval()


def tokens(*rows: list[int]) -> Tokens:
    padded = Tokens.pad(rows, 0)
    letters = torch.from_numpy(spelled([WORDS[token] for token in padded.ids.flatten().tolist()]))
    return padded._replace(letters=letters.view(*padded.ids.shape, -1))


def ways(model: TwoWayModel, *rows: list[int]) -> tuple[Tensor, Tensor]:
    return model.ways(model.read(tokens(*rows)))


def test_neither_direction_ever_sees_what_it_is_asked_for() -> None:
    """The half that foretells token t is the same whatever stands at t and beyond."""
    model = build()
    forward, backward = ways(model, [1, 2, 3, 4, 5])
    for place in range(5):
        row = [1, 2, 3, 4, 5]
        row[place] = 7
        other_forward, other_backward = ways(model, row)
        torch.testing.assert_close(forward[:, :place], other_forward[:, :place])
        torch.testing.assert_close(backward[:, place + 1 :], other_backward[:, place + 1 :])
        assert not torch.allclose(forward[:, place:], other_forward[:, place:])
        assert not torch.allclose(backward[:, : place + 1], other_backward[:, : place + 1])


def test_padding_changes_nothing() -> None:
    model = build()
    alone, together = ways(model, [3, 4]), ways(model, [3, 4], [1, 2, 3, 4, 5])
    for own, both in zip(alone, together, strict=True):
        torch.testing.assert_close(own[0], both[0, :2])


def test_the_cost_is_that_of_both_directions_by_the_formula() -> None:
    model, row = build(), [1, 2, 3, 4, 5]
    batch = TextBatch(tokens(row), torch.tensor([[2, 3, 4, 5, 6]]), torch.zeros(1).numpy(), False)
    outcome = BothWaysSpec().build()(model, batch, Progress(1, 0, 0))
    forward, backward = ways(model, row)
    ahead, back = (model.predict(half)[0].log_softmax(-1).detach() for half in (forward, backward))
    expected = -sum(float(ahead[t, token]) for t, token in enumerate([2, 3, 4, 5, 6]))
    expected -= sum(float(back[t + 1, token]) for t, token in enumerate([1, 2, 3, 4]))
    assert float(outcome.loss.detach()) == pytest.approx(expected, rel=1e-5)
    assert outcome.count == 9
    assert sum(outcome.parts.values()) == pytest.approx(expected, rel=1e-5)
    assert 0.5 < expected / 9 / math.log(len(WORDS)) < 2


def test_everything_learns_and_letters_and_words_serve_both_directions() -> None:
    model, row = build().train(), [1, 2, 3, 4, 5]
    batch = TextBatch(tokens(row), torch.tensor([[2, 3, 4, 5, 6]]), torch.zeros(1).numpy(), False)
    BothWaysSpec().build()(model, batch, Progress(1, 0, 0)).loss.backward()
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            assert weight.grad is not None, name
            assert weight.grad.any(), name
    cells = [name for name, _ in model.named_parameters() if name.endswith("weight_hr_l0")]
    assert len(cells) == 4
    assert sum(name.startswith("words.") for name, _ in model.named_parameters()) == 2


def test_the_second_layer_stands_beside_the_first() -> None:
    """With a second layer that says nothing, the states are those of the first (residual, not plain)."""
    model = build()
    with torch.no_grad():
        for cell in model.encoder.stack.layers[1].mixers[0].cells:
            cell.fused.weight_hr_l0.zero_()
    _, first, second = model.encoder.layers(tokens([1, 2, 3]))
    torch.testing.assert_close(first, second)


def test_what_would_mingle_the_directions_is_refused() -> None:
    first, second = SPEC.encoder.stack.blocks
    apart = second.model_copy(update={"join": first.join})
    for blocks in ((first, first), (apart, second), (first, second, first)):
        stack = SPEC.encoder.stack.model_copy(update={"blocks": blocks})
        spec = SPEC.model_copy(update={"encoder": SPEC.encoder.model_copy(update={"stack": stack})})
        with pytest.raises(UsageError, match="show words to themselves"):
            build(spec)
    normed = second.model_copy(update={"join": PostNormSpec()})
    stack = SPEC.encoder.stack.model_copy(update={"blocks": (first, normed)})
    with pytest.raises(UsageError, match="a norm over both directions"):
        build(SPEC.model_copy(update={"encoder": SPEC.encoder.model_copy(update={"stack": stack})}))
