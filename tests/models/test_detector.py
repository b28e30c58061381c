"""Replaced tokens: what is drawn, what counts as replaced, the loss by its formula, what is shared."""

import pytest
import torch

from regard.core.errors import UsageError
from regard.core.randomness import drawing_from
from regard.core.sequences import Places, Tokens
from regard.data.passages import PassageBatch
from regard.models.detector import Detector, DetectorSpec, drawn, with_guesses
from regard.objectives.objective import Progress
from regard.objectives.replaced_tokens import ReplacedTokensSpec
from regard.parts.positions import LearnedSpec, NoPairPositionSpec
from regard.recipes.bert import bert_model
from regard.tasks.detecting import marking

WORDS = 23


def detector(shared: bool = True, table: int = 8) -> Detector:
    torch.manual_seed(1)
    learned, unfelt = LearnedSpec(longest=16), NoPairPositionSpec()
    reader = bert_model(layers=1, width=12, heads=2, positions=learned, distances=unfelt, table=8)
    generator = bert_model(layers=1, width=6, heads=1, positions=learned, distances=unfelt, table=table)
    spec = DetectorSpec(encoder=reader.encoder, generator=generator, shared=shared)
    return spec.build({"text": WORDS}).eval()


def batch() -> PassageBatch:
    tokens = Tokens.pad([[2, 4, 7, 8, 9, 3], [2, 11, 4, 3]], 0)
    places = Places.pad([[1, 3], [2]])
    return PassageBatch(tokens, places, torch.tensor([[6, 8], [12, 0]]), None, torch.zeros(2).numpy())


def test_tokens_are_drawn_by_their_probabilities() -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(20_000, -1) + 3.0
    with drawing_from(torch.Generator().manual_seed(5)):
        first = drawn(logits)
    shares = torch.bincount(first, minlength=4) / len(first)
    assert shares.tolist() == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.012)
    with drawing_from(torch.Generator().manual_seed(5)):
        assert torch.equal(drawn(logits), first)
    with drawing_from(torch.Generator().manual_seed(6)):
        assert not torch.equal(drawn(logits), first)


def test_a_guess_that_is_right_is_no_replacement() -> None:
    given = batch()
    wanted = given.wanted[given.places.real]
    shown, replaced = with_guesses(given.tokens, given.places, wanted, torch.tensor([6, 5, 13]))
    assert shown.ids.tolist() == [[2, 6, 7, 5, 9, 3], [2, 11, 13, 3, 0, 0]]
    assert replaced.nonzero().tolist() == [[0, 3], [1, 2]]
    assert given.tokens.ids[0, 1] == 4


def test_the_loss_is_that_of_the_formula() -> None:
    """L_MLM + λ L_Disc, each a mean over what it is asked of, times the number of hidden tokens."""
    model, given = detector(), batch()
    real, wanted = given.places.real, given.wanted[given.places.real]
    with drawing_from(torch.Generator().manual_seed(5)):
        outcome = ReplacedTokensSpec(weight=7.0).build()(model, given, Progress(1, 0, 0))
    with torch.no_grad():
        states = given.places.pick(model.generator.read(given.tokens).states)[real]
        logits = model.generator.predict(states)
        with drawing_from(torch.Generator().manual_seed(5)):
            guesses = drawn(logits)
        guessing = -logits.log_softmax(-1).gather(-1, wanted[:, None]).sum()
        ids = given.tokens.ids.clone()
        ids[0, 1], ids[0, 3], ids[1, 2] = guesses
        p = model.doubt(model.read(given.tokens._replace(ids=ids))).sigmoid()
        true = torch.zeros_like(p)
        true[0, 1], true[0, 3], true[1, 2] = (guesses != wanted).float()
        each = -(true * p.log() + (1 - true) * (1 - p).log())[given.tokens.real]
    assert outcome.count == 3
    assert len(each) == 10
    assert float(outcome.loss.detach()) == pytest.approx(float(guessing + 7 * 3 * each.mean()), rel=1e-5)
    assert outcome.parts["words"] == pytest.approx(float(guessing), rel=1e-5)


def test_the_one_that_tells_does_not_teach_the_one_that_guesses() -> None:
    model, given = detector(shared=False).train(), batch()
    loud, quiet = (ReplacedTokensSpec(weight=weight).build() for weight in (1e3, 1e-3))
    gradients = []
    for objective in (loud, quiet):
        model.zero_grad()
        torch.manual_seed(4)
        objective(model, given, Progress(1, 0, 0)).loss.backward()
        gradients.append([weight.grad.clone() for weight in model.generator.parameters()])
    assert all(torch.allclose(one, other) for one, other in zip(*gradients, strict=True))
    assert all(weight.grad is not None for weight in model.encoder.parameters())


def test_tables_are_shared_and_stored_once() -> None:
    model = detector()
    ours, theirs = model.encoder.embedding, model.generator.encoder.embedding
    assert ours.tokens is theirs.tokens
    assert ours.positions is theirs.positions
    assert model.generator.words.words.weight is ours.tokens.weight
    assert ours.lead is not theirs.lead
    names = [name for name, _ in model.named_parameters()]
    assert "encoder.embedding.tokens.weight" in names
    assert not any("generator" in name and "tokens" in name for name in names)
    assert detector(shared=False).generator.encoder.embedding.tokens is not ours.tokens
    with pytest.raises(UsageError, match="the generator's is 6 wide, the reader's 8"):
        detector(table=6)


def test_marks_stand_around_what_is_doubtful() -> None:
    text = "the chef ate the meal"
    spans = [(0, 3), (4, 6), (6, 8), (9, 12), (13, 16), (17, 21)]
    assert marking(text, spans, [False] * 6) == text
    assert marking(text, spans, [False, False, False, True, False, True]) == "the chef ⟦ate⟧ the ⟦meal⟧"
    assert marking(text, spans, [True, True, True, False, False, False]) == "⟦the⟧ ⟦chef⟧ ate the meal"


def test_a_reader_learns_to_tell() -> None:
    """Random guesses in a text of one word: whatever is another word was replaced."""
    model = detector(shared=False).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    tokens = Tokens.whole(torch.full((8, 12), 7))
    losses = []
    for step in range(60):
        generator = torch.Generator().manual_seed(step)
        at = torch.randint(0, 12, (8, 1), generator=generator)
        given = PassageBatch(
            tokens._replace(ids=tokens.ids.scatter(1, at, 4)), Places(at, at >= 0),
            torch.full((8, 1), 7), None, torch.zeros(8).numpy(),
        )  # fmt: skip
        outcome = ReplacedTokensSpec().build()(model, given, Progress(step, 0, 0))
        optimiser.zero_grad()
        outcome.loss.backward()
        optimiser.step()
        losses.append(outcome.parts["replaced"] / 50 / outcome.count)
    assert losses[-1] < 0.3 * losses[0]
