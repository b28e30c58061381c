"""Orthogonal updates are torch's Muon, those of everything else torch's AdamW, and state survives a save."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from regard.core.precision import factors_rounded_to
from regard.heads.vocabulary import VocabularySpec
from regard.training.optimisation import Muon, groups_of, load_optimiser, optimiser_tensors, set_rate
from regard.training.orthogonal import nearest_orthogonal, step_by_step, through_squares

RATE = 0.02


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 6)
        self.wide, self.also_wide, self.tall = nn.Linear(6, 4), nn.Linear(6, 4), nn.Linear(8, 16)
        self.norm = nn.LayerNorm(6)
        self.head = VocabularySpec().build(6, 11, None)


def model_with_gradients(seed: int) -> Small:
    torch.manual_seed(0)
    model = Small()
    torch.manual_seed(seed)
    give_gradients(model)
    return model


def give_gradients(model: nn.Module) -> None:
    for weight in model.parameters():
        weight.grad = torch.randn_like(weight)


def matrices(model: Small) -> list[nn.Parameter]:
    return [layer.weight for layer in (model.wide, model.also_wide, model.tall)]


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_are_those_of_torch(decay: float) -> None:
    ours, theirs = model_with_gradients(1), model_with_gradients(1)
    optimiser = Muon(weight_decay=decay).build(groups_of(ours))
    set_rate(optimiser, RATE)
    chosen = {id(weight) for weight in matrices(theirs)}
    rest = [weight for weight in theirs.parameters() if id(weight) not in chosen]
    options = {"lr": RATE, "weight_decay": decay}
    muon = torch.optim.Muon(matrices(theirs), adjust_lr_fn="match_rms_adamw", **options)
    vectors, tables = ([weight for weight in rest if (weight.ndim > 1) is tall] for tall in (False, True))
    groups = [{"params": tables}, {"params": vectors, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9, **options)
    for step in range(4):
        torch.manual_seed(step)
        give_gradients(ours)
        torch.manual_seed(step)
        give_gradients(theirs)
        for taken in (optimiser, muon, adam):
            taken.step()
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        # torch orthogonalises in bfloat16, which has three digits.
        tolerance = 0.02 * RATE * 4 if name.split(".")[0] in ("wide", "also_wide", "tall") else 1e-6
        torch.testing.assert_close(
            a, b, rtol=1e-5, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("shape", [(1, 5, 5), (3, 4, 9), (2, 9, 4)])
def test_all_singular_values_come_close_to_one(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    matrices: Tensor = torch.randn(shape) * torch.tensor([1e-4, 1.0, 1e4])[: shape[0], None, None]
    found = nearest_orthogonal(matrices)
    values = torch.linalg.svdvals(found)
    assert (values > 0.5).all()
    assert (values < 1.3).all()
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    assert (torch.linalg.matrix_norm(found - u @ v) < 0.35 * min(shape[1:]) ** 0.5).all()


def test_no_gradient_moves_nothing_and_zero_stays_finite() -> None:
    model = Small()
    before = copy.deepcopy(model.state_dict())
    optimiser = Muon().build(groups_of(model))
    set_rate(optimiser, RATE)
    optimiser.step()
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimiser.step()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_what_is_a_map_and_what_is_a_table() -> None:
    model = Small()
    groups = groups_of(model)
    maps = [weight for group in groups if group.maps for weight in group.parameters]
    assert {id(weight) for weight in maps} == {id(weight) for weight in matrices(model)}
    assert sum(len(group.parameters) for group in groups) == len(list(model.parameters()))


def test_a_saved_optimiser_goes_on_as_if_nothing_had_happened(tmp_path) -> None:  # type: ignore[no-untyped-def]
    one = model_with_gradients(1)
    optimiser = Muon().build(groups_of(one))
    set_rate(optimiser, RATE)
    optimiser.step()
    other = copy.deepcopy(one)
    loaded = Muon().build(groups_of(other))
    tensors = {name: tensor.clone() for name, tensor in optimiser_tensors(optimiser, one).items()}
    load_optimiser(loaded, other, tensors, tmp_path)
    set_rate(loaded, RATE)
    for model, taken in ((one, optimiser), (other, loaded)):
        torch.manual_seed(9)
        give_gradients(model)
        taken.step()
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


@given(
    rows=st.integers(1, 12), times=st.integers(1, 6), iterations=st.integers(0, 6), seed=st.integers(0, 99)
)
def test_squares_of_the_short_side_give_the_same(rows: int, times: int, iterations: int, seed: int) -> None:
    x = torch.randn(3, rows, rows * times, generator=torch.Generator().manual_seed(seed)).double()
    x = x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True)
    expected = step_by_step(x, iterations)
    torch.testing.assert_close(through_squares(x, iterations), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 32, 32), (2, 16, 96), (2, 128, 16)])
def test_rounded_factors_turn_updates_the_same_way(shape: tuple[int, ...]) -> None:
    """Also momentum that lies in few directions, as real momentum does."""
    random = torch.Generator().manual_seed(1)
    many, rows, columns = shape
    few = torch.randn(many, rows, 4, generator=random) @ torch.randn(many, 4, columns, generator=random)
    matrices = few + 0.05 * torch.randn(shape, generator=random)
    exact = nearest_orthogonal(matrices)
    with factors_rounded_to(torch.bfloat16):
        rounded = nearest_orthogonal(matrices)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    assert (rounded - exact).norm() < 0.15 * exact.norm()
