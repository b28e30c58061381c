"""The n-gram model: by hand, against dictionaries, through the laws of decoders and through every search."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.core.errors import RunError, UsageError
from regard.core.sequences import Tokens
from regard.core.spec import Spec
from regard.core.state import repeat_rows, select_rows
from regard.data.units import LEARNED_MARKS
from regard.models import ngram
from regard.models.model import ModelSpec
from regard.models.ngram import NOTHING, Ngram, NgramSpec
from regard.parts.smoothing import AddSpec, KneserNeySpec, MaximumLikelihoodSpec, SmoothingSpec
from regard.search.beam import BeamSpec
from regard.search.exhaustive import ExhaustiveSpec
from regard.search.greedy import GreedySpec
from regard.search.sampling import SamplingSpec
from regard.training.run_folder import RunFolder
from regard.training.weights import load_all, load_matching, named_weights
from tests.parts.documents import BEGIN, END, PADDING, UNKNOWN, KneserNey, corpora, flat, some_text

VOCABULARY = 11
ALL: dict[str, SmoothingSpec] = {
    "maximum likelihood": MaximumLikelihoodSpec(),
    "add k": AddSpec(k=0.3),
    "kneser-ney": KneserNeySpec(),
}
every_smoothing = pytest.mark.parametrize("smoothing", ALL.values(), ids=ALL)
every_order = pytest.mark.parametrize("order", [1, 2, 4])


def learnt(
    documents: Sequence[Sequence[int]], order: int, smoothing: SmoothingSpec, vocabulary: int = VOCABULARY
) -> Ngram:
    model = NgramSpec(order=order, smoothing=smoothing).build({"text": vocabulary}).double()
    model.learn(*flat(documents))
    return model


@cache
def text_model(order: int, smoothing: SmoothingSpec) -> Ngram:
    return learnt(some_text(7, VOCABULARY, 40), order, smoothing)


def some_tokens(batch: int, time: int, seed: int = 3) -> Tensor:
    """Ordinary words, unknown ones and ends: also what was never counted."""
    dice = torch.Generator().manual_seed(seed)
    ids = torch.randint(END, VOCABULARY, (batch, time), generator=dice)
    return torch.where(torch.rand(batch, time, generator=dice) < 0.1, UNKNOWN, ids)


def read(model: Ngram, ids: Tensor, real: Tensor | None = None, cuts: Sequence[int] = ()) -> Tensor:
    """Log-probabilities after every token, read in the pieces given by ``cuts``."""
    real = torch.ones_like(ids, dtype=torch.bool) if real is None else real
    state, found = model.start(len(ids)), []
    for begin, end in pairwise((0, *cuts, ids.shape[1])):
        x, state = model.read(Tokens(ids[:, begin:end], real[:, begin:end]), state)
        found.append(model.predict(x))
    return torch.cat(found, dim=1)


def after(model: Ngram, *context: int) -> Tensor:
    """Probabilities of all words after begin and ``context``."""
    return read(model, torch.tensor([[BEGIN, *context]]))[0, -1].exp()


# By hand.

THE, DOG, CAT, SEES = range(4, 8)
TALES = [[THE, DOG, SEES, THE, CAT, END], [THE, CAT, SEES, THE, DOG, END], [THE, DOG, END]]


def test_the_dog_is_likelier_than_the_the() -> None:
    model = learnt(TALES, 2, MaximumLikelihoodSpec())
    p = after(model, THE)
    assert p[DOG] == pytest.approx(float(Fraction(3, 5)))
    assert p[CAT] == pytest.approx(float(Fraction(2, 5)))
    assert p[DOG] > p[THE] == 0
    assert after(model)[THE] == 1
    assert after(model, DOG).tolist() == pytest.approx([0, 0, 0, 2 / 3, 0, 0, 0, 1 / 3, 0, 0, 0])


def test_one_more_of_everything() -> None:
    """Nine words can be produced: not padding, not the begin token."""
    p = after(learnt(TALES, 2, AddSpec()), THE)
    assert p[DOG] == pytest.approx(float(Fraction(3 + 1, 5 + 9)))
    assert p[THE] == pytest.approx(float(Fraction(1, 5 + 9)))
    assert p[DOG] > p[THE] > 0


def test_a_context_never_seen_leaves_it_to_a_shorter_one() -> None:
    model = learnt(TALES, 3, MaximumLikelihoodSpec())
    assert after(model, CAT, THE).tolist() == after(learnt(TALES, 2, MaximumLikelihoodSpec()), THE).tolist()
    alone = after(learnt(TALES, 1, MaximumLikelihoodSpec()))
    assert after(model, 9).tolist() == alone.tolist()
    assert alone[END] == pytest.approx(3 / 15)


@settings(max_examples=7)
@given(documents=corpora(VOCABULARY), order=st.integers(1, 4), seed=st.integers(0, 99))
def test_kneser_ney_is_what_dictionaries_say(documents: list[list[int]], order: int, seed: int) -> None:
    model, expected = learnt(documents, order, KneserNeySpec()), KneserNey(documents, order, VOCABULARY)
    ids = torch.cat((torch.full((3, 1), BEGIN), some_tokens(3, 6, seed)), dim=1)
    got = read(model, ids).exp()
    for row, line in enumerate(ids.tolist()):
        begun = [BEGIN if token == END else token for token in line]
        for time in range(len(line)):
            # Only what came after the last begin is of this document.
            here = begun[max(i for i in range(time + 1) if begun[i] == BEGIN) : time + 1]
            h = tuple(here[max(0, len(here) - order + 1) :]) if order > 1 else ()
            by_hand = [expected.probability(w, h) for w in range(VOCABULARY)]
            assert got[row, time].tolist() == pytest.approx(by_hand, abs=1e-9)


# What every decoder keeps.


@every_smoothing
@settings(max_examples=7)
@given(documents=corpora(VOCABULARY), order=st.integers(1, 5), seed=st.integers(0, 99))
def test_probabilities_sum_to_one(
    smoothing: SmoothingSpec, documents: list[list[int]], order: int, seed: int
) -> None:
    p = read(learnt(documents, order, smoothing), some_tokens(5, 7, seed)).exp()
    torch.testing.assert_close(p.sum(-1), torch.ones(5, 7).double())
    assert (p >= 0).all()
    assert (p[..., [PADDING, BEGIN]] == 0).all()


@every_order
@every_smoothing
def test_what_is_wanted_costs_what_the_whole_distribution_says(order: int, smoothing: SmoothingSpec) -> None:
    model = text_model(order, smoothing)
    ids = some_tokens(5, 13)
    x, _ = model.read(Tokens.whole(ids), model.start(5))
    contexts, wanted = x.flatten(0, 1), some_tokens(5, 13, seed=4).flatten()
    wanted[:2] = torch.tensor([PADDING, BEGIN])
    expected = model.predict(contexts).gather(1, wanted[:, None]).squeeze(1)
    torch.testing.assert_close(model.log_probs_of(contexts, wanted), expected)
    possible = expected > -math.inf
    cost = model.cost(contexts[possible], wanted[possible], 0.0)
    assert float(cost) == pytest.approx(-float(expected[possible].sum()))


@every_order
@every_smoothing
def test_a_step_is_reading_one_token(order: int, smoothing: SmoothingSpec) -> None:
    model, ids = text_model(order, smoothing), some_tokens(3, 9)
    whole, state = read(model, ids), model.start(3)
    for time in range(9):
        log_probs, state = model.step(ids[:, time], state)
        torch.testing.assert_close(log_probs, whole[:, time])


@every_order
@given(cuts=st.sets(st.integers(1, 8), max_size=4))
def test_chunk_law_whole_equals_pieces(order: int, cuts: set[int]) -> None:
    model, ids = text_model(order, KneserNeySpec()), some_tokens(3, 9)
    assert read(model, ids, cuts=sorted(cuts)).equal(read(model, ids))


@every_order
@given(lengths=st.lists(st.integers(0, 5), min_size=3, max_size=3))
def test_padding_law_padding_between_pieces_leaves_no_trace(order: int, lengths: list[int]) -> None:
    model, first, more = text_model(order, KneserNeySpec()), some_tokens(3, 5), some_tokens(3, 4, seed=8)
    real = torch.arange(9) < torch.tensor(lengths)[:, None]
    real[:, 5:] = True
    first[~real[:, :5]] = PADDING
    together = read(model, torch.cat((first, more), dim=1), real, cuts=[5])
    for row, length in enumerate(lengths):
        alone = read(model, torch.cat((first[row, :length], more[row]))[None])[0]
        assert torch.cat((together[row, :length], together[row, 5:])).equal(alone)


@every_order
@given(rows=st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_rows_law_reordering_the_state_reorders_the_answers(order: int, rows: list[int]) -> None:
    model, now, index = (
        text_model(order, KneserNeySpec()),
        some_tokens(3, 1, seed=9)[:, 0],
        torch.tensor(rows),
    )
    _, state = model.read(Tokens.whole(some_tokens(3, 6)), model.start(3))
    expected, _ = model.step(now, state)
    got, _ = model.step(now[index], select_rows(state, index))
    assert got.equal(expected[index])
    again, _ = model.step(now.repeat_interleave(2), repeat_rows(state, 2))
    assert again.equal(expected.repeat_interleave(2, dim=0))


def test_nothing_is_remembered_before_the_first_token() -> None:
    model = text_model(4, KneserNeySpec())
    assert model.start(2).tolist() == [[NOTHING] * 3] * 2
    contexts, state = model.read(Tokens.whole(torch.tensor([[BEGIN, 5]])), model.start(1))
    assert contexts.tolist() == [[[NOTHING, NOTHING, BEGIN], [NOTHING, BEGIN, 5]]]
    assert state.tolist() == [[NOTHING, BEGIN, 5]]
    assert model.longest is None


def test_after_an_end_another_document_begins() -> None:
    """So a text of many documents may be read in one go, without begin tokens."""
    model = text_model(4, KneserNeySpec())
    stream = read(model, torch.tensor([[BEGIN, 4, 5, END, 6, 7]]))
    apart = read(model, torch.tensor([[BEGIN, 6, 7]]))
    assert stream[:, 3:].equal(apart)


# Searched and sampled.


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_beam_finds_the_most_probable_text(order: int, seed: int) -> None:
    model = learnt(some_text(seed, 7, 9), order, KneserNeySpec(), vocabulary=7)
    given_ = (model.step, model.start(2), torch.tensor([BEGIN, BEGIN]), END, 5)
    whole = ExhaustiveSpec(alpha=0, best=3).build()(*given_)
    beam = BeamSpec(size=7**4, alpha=0, best=3).build()(*given_)
    assert [[one.tokens for one in some] for some in beam] == [[one.tokens for one in some] for some in whole]
    for one in whole[0]:
        p = [after(model, *one.tokens[:i])[w] for i, w in enumerate([*one.tokens, END])]
        assert one.log_prob == pytest.approx(sum(math.log(float(x)) for x in p))


def test_greedy_takes_the_garden_path_and_a_beam_of_two_does_not() -> None:
    """4 begins 6 of 10 texts and goes on in six ways; 5 begins 4 of them and always goes on with 6."""
    documents = [[4, w, END] for w in range(5, 11)] + [[5, 6, END]] * 4
    model = learnt(documents, 3, MaximumLikelihoodSpec())
    given_ = (model.step, model.start(1), torch.tensor([BEGIN]), END, 5)
    greedy = GreedySpec(alpha=0).build()(*given_)[0][0]
    beam = BeamSpec(size=2, alpha=0).build()(*given_)[0][0]
    assert greedy.tokens[0] == 4
    assert greedy.log_prob == pytest.approx(math.log(0.6 / 6))
    assert beam.tokens == ExhaustiveSpec(alpha=0, most=11**5).build()(*given_)[0][0].tokens == [5, 6]
    assert beam.log_prob == pytest.approx(math.log(0.4))


def test_samples_are_repeatable_and_follow_the_counts() -> None:
    documents = [[4, END]] * 3 + [[5, END]]
    model = learnt(documents, 2, MaximumLikelihoodSpec())
    given_ = (model.step, model.start(200), torch.full((200,), BEGIN), END, 3)
    found = SamplingSpec(seed=5).build()(*given_)
    assert found == SamplingSpec(seed=5).build()(*given_)
    assert found != SamplingSpec(seed=6).build()(*given_)
    fours = sum(some[0].tokens == [4] for some in found)
    assert all(some[0].tokens in ([4], [5]) for some in found)
    assert 130 < fours < 170  # expected 150, standard deviation 6


# Kept.


class WholeSpec(Spec):
    model: ModelSpec


@every_order
@every_smoothing
def test_saved_and_loaded_it_says_the_same(order: int, smoothing: SmoothingSpec, tmp_path: Path) -> None:
    model, spec = text_model(order, smoothing), NgramSpec(order=order, smoothing=smoothing)
    RunFolder.create(tmp_path / "run", WholeSpec(model=spec), 1, "", {}).save_weights(named_weights(model))
    run = RunFolder.open(tmp_path / "run")
    again = WholeSpec.from_dict(run.record.spec).model.build({"text": VOCABULARY}).double()
    run.load_into(again)
    assert isinstance(again, Ngram)
    ids = some_tokens(5, 13)
    assert read(again, ids).equal(read(model, ids))


def test_torch_loads_it_too_and_so_does_a_run_that_starts_from_it() -> None:
    model, ids = text_model(3, KneserNeySpec()), some_tokens(5, 13)
    fresh = NgramSpec(order=3).build({"text": VOCABULARY}).double()
    fresh.load_state_dict(model.state_dict())
    assert read(fresh, ids).equal(read(model, ids))
    other = NgramSpec(order=3).build({"text": VOCABULARY}).double()
    assert load_matching(other, named_weights(model), Path("elsewhere")).untouched == []
    assert read(other, ids).equal(read(model, ids))


def test_weights_of_another_vocabulary_or_order_are_refused() -> None:
    stored = named_weights(text_model(3, KneserNeySpec()))
    with pytest.raises(RunError, match=r"words is \[11\] float64 in the file, \[12\] float32"):
        load_all(NgramSpec(order=3).build({"text": 12}), stored, Path("run"))
    with pytest.raises(RunError, match=r"missing: following\.2\.keys"):
        load_all(NgramSpec(order=4).build({"text": VOCABULARY}), stored, Path("run"))


# Read by others.


def read_arpa(lines: Iterable[str]) -> dict[tuple[str, ...], tuple[float, float]]:
    """log₁₀ p and log₁₀ weight of every n-gram; counts in the head must be right."""
    found: dict[tuple[str, ...], tuple[float, float]] = {}
    announced: dict[int, int] = {}
    for line in "\n".join(lines).split("\n"):
        if line.startswith("ngram "):
            order, number = line.removeprefix("ngram ").split("=")
            announced[int(order)] = int(number)
        elif line and not line.startswith("\\"):
            score, text, *weight = line.split("\t")
            found[tuple(text.split())] = (float(score), float(weight[0]) if weight else 0.0)
    assert announced == {n: sum(len(gram) == n for gram in found) for n in announced}
    return found


def backed_off(entries: dict[tuple[str, ...], tuple[float, float]], gram: tuple[str, ...]) -> float:
    """As the format is read: log₁₀ p(w | h) as written, or weight(h) · p(w | h′)."""
    if gram in entries:
        return entries[gram][0]
    return entries.get(gram[:-1], (0.0, 0.0))[1] + backed_off(entries, gram[1:])


NAMES = ["<pad>", "<unk>", "<s>", "</s>", *(f"w{i}" for i in range(4, VOCABULARY))]


@every_order
@pytest.mark.parametrize("smoothing", [MaximumLikelihoodSpec(), KneserNeySpec()], ids=lambda s: s.kind())
def test_an_arpa_file_says_the_same(order: int, smoothing: SmoothingSpec) -> None:
    model = text_model(order, smoothing)
    entries = read_arpa(model.arpa_lines(NAMES))
    ids = torch.cat((torch.full((5, 1), BEGIN), some_tokens(5, 6)), dim=1)
    got = read(model, ids).exp()
    for row, line in enumerate(ids.tolist()):
        words = [NAMES[BEGIN if token == END else token] for token in line]
        for time in range(len(line)):
            h = tuple(words[max(0, time - order + 2) : time + 1]) if order > 1 else ()
            for w in (UNKNOWN, *range(END, VOCABULARY)):
                assert float(got[row, time, w]) == pytest.approx(
                    10 ** backed_off(entries, (*h, NAMES[w])), rel=1e-5, abs=1e-12
                )


def test_kenlm_scores_what_the_model_scores(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    model, path = text_model(4, KneserNeySpec()), tmp_path / "model.arpa"
    path.write_text("\n".join(model.arpa_lines(NAMES)) + "\n")
    theirs = kenlm.Model(str(path))
    for seed in range(20):
        words = some_tokens(1, 9, seed)[0]
        words[words == END] = 4
        ids = torch.cat((torch.tensor([BEGIN]), words, torch.tensor([END])))
        x, _ = model.read(Tokens.whole(ids[None, :-1]), model.start(1))
        ours = model.log_probs_of(x[0], ids[1:]) / math.log(10)
        scores = [score for score, _, _ in theirs.full_scores(" ".join(NAMES[w] for w in words.tolist()))]
        assert ours.tolist() == pytest.approx(scores, abs=1e-5)


def test_arpa_files_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="cannot say add-k"):
        text_model(2, AddSpec(k=0.3)).arpa_lines(NAMES)
    with pytest.raises(UsageError, match="3 names for a vocabulary of 11"):
        text_model(2, KneserNeySpec()).arpa_lines(NAMES[:3])


# What cannot be.


def test_before_it_has_counted_it_says_so() -> None:
    model = NgramSpec(order=2).build({"text": VOCABULARY})
    with pytest.raises(UsageError, match="counted nothing yet"):
        model.step(torch.tensor([BEGIN]), model.start(1))


def test_smoothed_targets_and_two_vocabularies_are_refused() -> None:
    model = text_model(2, KneserNeySpec())
    with pytest.raises(UsageError, match=r"smoothing of targets is 0\.1"):
        model.cost(model.start(1), torch.tensor([4]), 0.1)
    with pytest.raises(UsageError, match=r"one vocabulary, not 2 \(source, target\)"):
        NgramSpec().build({"source": 5, "target": 7})


def test_special_tokens_are_the_tokenizers() -> None:
    special = LEARNED_MARKS
    assert special[:4] == (ngram.PADDING, ngram.UNKNOWN, ngram.BEGIN, ngram.END)


def test_spec_goes_to_json_and_back() -> None:
    whole = WholeSpec(model=NgramSpec(order=3, smoothing=AddSpec(k=0.5)))
    assert WholeSpec.from_json(whole.to_json()) == whole
    assert whole.to_dict()["model"] == {
        "kind": "ngram", "order": 3, "smoothing": {"kind": "add_k", "k": 0.5}
    }  # fmt: skip
