"""The chain against every labelling written out, against finite differences, and by hand."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.heads.chain import Chain

GONE = 1e9


def chain(labels: int, seed: int, forbidden: float = 0.0, scale: float = 1.0) -> Chain:
    """With moves of its own; label 0 may always begin, follow and end, so that there is a way through."""
    random = torch.Generator().manual_seed(seed)
    allowed = torch.rand(labels + 2, labels + 2, generator=random) >= forbidden
    allowed[0, :labels] = allowed[:labels, 0] = True
    allowed[labels, 0] = allowed[0, labels + 1] = True
    built = Chain(labels, allowed if forbidden else None).double()
    for parameter in built.parameters():
        parameter.data = torch.randn(parameter.shape, generator=random, dtype=torch.float64) * scale
    return built


def problem(lengths: list[int], labels: int, seed: int, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths), labels)
    emissions = torch.randn(shape, generator=random, dtype=torch.float64) * scale
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return emissions.masked_fill(~real[..., None], GONE), real


def score(head: Chain, emissions: Tensor, path: tuple[int, ...]) -> float:
    """Eq. 1 of Lample et al. 2016, term by term; −∞ if a step is forbidden."""
    labels, forbidden = len(head.begins), head.get_buffer("_forbidden")
    steps = [labels, *path, labels + 1]
    if any(forbidden[a, b] for a, b in itertools.pairwise(steps)):
        return -math.inf
    value = head.begins[path[0]].item() + head.ends[path[-1]].item()
    value += sum(emissions[t, label].item() for t, label in enumerate(path))
    return value + sum(head.moves[a, b].item() for a, b in itertools.pairwise(path))


def all_paths(head: Chain, emissions: Tensor) -> dict[tuple[int, ...], float]:
    """Probability of every labelling of one row."""
    paths = list(itertools.product(range(len(head.begins)), repeat=len(emissions)))
    scores = torch.tensor([score(head, emissions, path) for path in paths], dtype=torch.float64)
    return dict(zip(paths, scores.softmax(0).tolist(), strict=True))


sizes = {
    "labels": st.integers(1, 4),
    "lengths": st.lists(st.integers(1, 5), min_size=1, max_size=3),
    "seed": st.integers(0, 10_000),
    "forbidden": st.sampled_from([0.0, 0.3, 0.8]),
    "scale": st.sampled_from([0.0, 1.0, 30.0]),
}


@given(**sizes)
def test_likelihood_best_and_marginals_by_enumeration(
    labels: int, lengths: list[int], seed: int, forbidden: float, scale: float
) -> None:
    head = chain(labels, seed, forbidden, scale)
    emissions, real = problem(lengths, labels, seed, scale)
    best, marginals = head.best(emissions, real), head.marginals(emissions, real)
    for row, length in enumerate(lengths):
        paths = all_paths(head, emissions[row, :length])
        for path in itertools.islice(paths, 0, None, max(1, len(paths) // 5)):
            wanted = torch.full(real.shape, -100)
            wanted[row, :length] = torch.tensor(path)
            wanted[torch.arange(len(lengths)) != row] = 0
            found = head.log_likelihood(emissions, wanted, real)[row]
            torch.testing.assert_close(found.exp().item(), paths[path], rtol=1e-6, atol=1e-12)
        assert len(best[row]) == length
        assert paths[tuple(best[row])] == pytest.approx(max(paths.values()))
        expected = torch.zeros(length, labels, dtype=torch.float64)
        for path, probability in paths.items():
            expected[range(length), path] += probability
        torch.testing.assert_close(marginals[row, :length], expected, rtol=1e-6, atol=1e-9)
        assert (marginals[row, length:] == 0).all()


def test_three_labels_by_hand() -> None:
    """Two tokens, labels O, B, I; I neither begins nor follows O: seven of nine paths, less two, are left."""
    allowed = torch.ones(5, 5, dtype=torch.bool)
    allowed[3, 2] = allowed[0, 2] = False
    head = Chain(3, allowed)
    head.moves.data = torch.tensor([[0.0, 0.0, 9.0], [0.0, 0.0, math.log(4.0)], [0.0, 0.0, 0.0]])
    head.ends.data = torch.tensor([math.log(2.0), 0.0, 0.0])
    emissions = torch.log(torch.tensor([[[1.0, 3.0, 50.0], [1.0, 1.0, 1.0]]]))
    real = torch.ones(1, 2, dtype=torch.bool)
    # OO 1·2, OB 1, BO 3·2, BB 3, BI 3·4: together 24.
    found = head.log_likelihood(emissions, torch.tensor([[1, 2]]), real)
    torch.testing.assert_close(found, torch.log(torch.tensor([12 / 24])))
    assert head.best(emissions, real) == [[1, 2]]
    expected = torch.tensor([[[3 / 24, 21 / 24, 0], [8 / 24, 4 / 24, 12 / 24]]])
    torch.testing.assert_close(head.marginals(emissions, real), expected)
    assert head.log_likelihood(emissions, torch.tensor([[0, 2]]), real).item() == -math.inf


def test_a_chain_without_anything_learned_is_a_softmax_a_token() -> None:
    emissions, real = problem([4, 2], 3, seed=5)
    head, wanted = Chain(3, None), torch.tensor([[0, 2, 1, 1], [2, 2, -1, -1]])
    log_probs = emissions.log_softmax(2)
    by_token = [log_probs[row, t, wanted[row, t]] for row, t in real.nonzero().tolist()]
    expected = torch.stack((torch.stack(by_token[:4]).sum(), torch.stack(by_token[4:]).sum()))
    torch.testing.assert_close(head.log_likelihood(emissions, wanted, real), expected)
    assert head.best(emissions, real) == [
        emissions[0].argmax(1).tolist(),
        emissions[1, :2].argmax(1).tolist(),
    ]


@pytest.mark.parametrize("forbidden", [0.0, 0.4])
@pytest.mark.parametrize("far", [0.0, 1000.0])
def test_gradients_are_right_by_finite_differences(forbidden: float, far: float) -> None:
    """Also by the careful way, which a label a thousand nats behind the others asks for."""
    head = chain(3, 8, forbidden)
    emissions, real = problem([4, 1, 3], 3, seed=2)
    emissions = emissions.masked_fill(~real[..., None], 0.5)
    emissions[0, 1, 1] -= far
    wanted = torch.tensor(head.best(emissions, real)[0][:1] * 12).view(3, 4)
    for row, path in enumerate(head.best(emissions, real)):
        wanted[row, : len(path)] = torch.tensor(path)
    names = ["moves", "begins", "ends"]

    def likelihood(emissions: Tensor, *parameters: Tensor) -> Tensor:
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(_Asked(head), {f"head.{k}": v for k, v in given.items()}, (
            emissions, wanted, real,
        ))  # fmt: skip

    inputs = [emissions, *(getattr(head, name).detach().clone() for name in names)]
    assert torch.autograd.gradcheck(likelihood, [tensor.requires_grad_() for tensor in inputs])


class _Asked(torch.nn.Module):
    def __init__(self, head: Chain) -> None:
        super().__init__()
        self.head = head

    def forward(self, emissions: Tensor, wanted: Tensor, real: Tensor) -> Tensor:
        return self.head.log_likelihood(emissions, wanted, real)


@given(seed=st.integers(0, 10_000), forbidden=st.sampled_from([0.0, 0.5]))
def test_marginals_are_the_slope_of_the_partition(seed: int, forbidden: float) -> None:
    """∂ log Z / ∂ e = p(y_t | x); of the wanted path the slope is one where it goes."""
    head = chain(4, seed, forbidden)
    emissions, real = problem([5, 3], 4, seed)
    emissions.requires_grad_()
    wanted = torch.zeros(2, 5, dtype=torch.long)
    (slope,) = torch.autograd.grad(head.log_likelihood(emissions, wanted, real).sum(), emissions)
    gone_to = torch.nn.functional.one_hot(wanted, 4) * real[..., None]
    torch.testing.assert_close(gone_to - slope, head.marginals(emissions.detach(), real))
    torch.testing.assert_close(head.marginals(emissions.detach(), real).sum(2), real.double())


@given(seed=st.integers(0, 10_000), forbidden=st.sampled_from([0.0, 0.5]))
def test_padding_and_company_change_nothing(seed: int, forbidden: float) -> None:
    """A row alone is the row in a batch, and what stands on padding is never read, not even by a slope."""
    head, lengths = chain(3, seed, forbidden), [2, 5, 1]
    emissions, real = problem(lengths, 3, seed)
    wanted = torch.zeros(real.shape, dtype=torch.long)

    def all_of(emissions: Tensor, wanted: Tensor, real: Tensor) -> tuple[Tensor, ...]:
        head.zero_grad()
        emissions = emissions.clone().requires_grad_()
        value = head.log_likelihood(emissions, wanted, real)
        value.sum().backward()  # type: ignore[no-untyped-call]
        assert emissions.grad is not None
        return (
            value.detach(),
            emissions.grad,
            *(p.grad.clone() for p in head.parameters() if p.grad is not None),
        )

    together = all_of(emissions, wanted, real)
    alone = [
        all_of(emissions[r : r + 1, :n], wanted[r : r + 1, :n], real[r : r + 1, :n])
        for r, n in enumerate(lengths)
    ]
    torch.testing.assert_close(together[0], torch.cat([one[0] for one in alone]))
    for row, length in enumerate(lengths):
        torch.testing.assert_close(together[1][row, :length], alone[row][1][0])
        assert (
            head.best(emissions, real)[row]
            == head.best(emissions[row : row + 1, :length], real[row : row + 1, :length])[0]
        )
    assert (together[1][~real] == 0).all()
    for number in range(2, 5):
        torch.testing.assert_close(together[number], sum(one[number] for one in alone))
    for filled in (math.nan, math.inf, -GONE):
        other = all_of(emissions.masked_fill(~real[..., None], filled), wanted, real)
        torch.testing.assert_close(other, together)


def test_what_is_forbidden_stays_forbidden_whatever_the_scores() -> None:
    head, (emissions, real) = chain(4, 3, forbidden=0.5), problem([6, 4], 4, seed=1)
    forbidden = head.get_buffer("_forbidden")
    head.moves.data = torch.where(forbidden[:4, :4], 1e6, head.moves.data)
    assert forbidden[:4, :4].any()
    for path in head.best(emissions, real):
        assert not any(forbidden[a, b] for a, b in itertools.pairwise([4, *path, 5]))
    assert head.marginals(emissions, real).isfinite().all()
    wanted = torch.zeros(2, 6, dtype=torch.long)
    head.log_likelihood(emissions, wanted, real).sum().backward()  # type: ignore[no-untyped-call]
    assert head.moves.grad is not None
    assert (head.moves.grad[forbidden[:4, :4]] == 0).all()
    assert (head.moves.grad[~forbidden[:4, :4]] != 0).any()


@pytest.mark.parametrize(("steps", "far"), [(1, 2000.0), (20, 60.0), (3, 12.0)])
def test_a_label_far_behind_is_not_lost(steps: int, far: float) -> None:
    """0 is better at first and leads nowhere; 1 leads to 2, which makes up for all, at once or bit by bit."""
    moves = [[1, 0, 0, 0, 1], [0, 1, 1, 0, 1], [0, 0, 1, 0, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    head = Chain(3, torch.tensor(moves).bool())
    emissions = torch.tensor([[[far, 0.0, -far]] * steps + [[0.0, 0.0, 2 * far]] * steps])
    real, path = torch.ones(1, 2 * steps, dtype=torch.bool), [1] * steps + [2] * steps
    found = head.log_likelihood(emissions, torch.tensor([[0] * (2 * steps)]), real)
    torch.testing.assert_close(found, torch.tensor([-far * steps]), rtol=1e-4, atol=0.0)
    assert head.best(emissions, real) == [path]
    torch.testing.assert_close(head.marginals(emissions, real)[0], torch.eye(3)[path], rtol=0, atol=1e-4)
    found.sum().backward()  # type: ignore[no-untyped-call]
    expected = [[2 * steps - 1, 0, 0], [0, 1 - steps, -1], [0, 0, 1 - steps]]
    torch.testing.assert_close(head.moves.grad, torch.tensor(expected, dtype=torch.float), rtol=0, atol=1e-3)


@pytest.mark.parametrize("far", [0.0, 1000.0])
def test_no_padding_is_too_long(far: float) -> None:
    """Every token of padding multiplies the sums by all labels; a short row must not notice."""
    head = chain(9, 4)
    emissions, real = problem([3, 400], 9, seed=6)
    emissions[0, 1, 0] -= far
    wanted = torch.zeros(2, 400, dtype=torch.long)
    together, alone = (
        torch.autograd.grad(head.log_likelihood(emissions[:, :n], wanted[:, :n], real[:, :n])[0], head.moves)[
            0
        ]
        for n in (400, 3)
    )
    torch.testing.assert_close(together, alone)


def test_a_row_of_nothing_costs_nothing_and_has_no_labels() -> None:
    head, (emissions, real) = chain(3, 1, forbidden=0.3), problem([3, 1], 3, seed=4)
    real[1] = False
    emissions.requires_grad_()
    value = head.log_likelihood(emissions, torch.zeros(2, 3, dtype=torch.long), real)
    assert value[1] == 0
    value.sum().backward()  # type: ignore[no-untyped-call]
    assert emissions.grad is not None
    assert (emissions.grad[1] == 0).all()
    assert [len(path) for path in head.best(emissions, real)] == [3, 0]


def test_single_precision_stays_single_and_the_table_is_not_among_the_weights() -> None:
    head = Chain(3, torch.ones(5, 5, dtype=torch.bool))
    emissions, real = problem([3], 3, seed=4)
    assert (
        head.log_likelihood(emissions.float(), torch.zeros(1, 3, dtype=torch.long), real).dtype
        == torch.float32
    )
    assert head.marginals(emissions.float(), real).dtype == torch.float32
    assert set(head.state_dict()) == {"moves", "begins", "ends"}
