"""Updates by hand, gradients of many batches as of one, optimiser memory by name."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from regard.core.errors import RunError, UsageError
from regard.objectives.objective import Outcome, Progress
from regard.training.optimisation import (
    SGD,
    Adam,
    AdamW,
    Group,
    OptimiserSpec,
    groups_of,
    load_optimiser,
    optimiser_tensors,
    scale_gradients,
    set_rate,
)
from regard.training.stepping import Placed, Stepper, Taken, mix
from tests.training import toy


def one_weight(value: list[float]) -> nn.Parameter:
    return nn.Parameter(torch.tensor(value, dtype=torch.float64))


def updated(spec: OptimiserSpec, decays: bool, gradients: list[float], rate: float) -> float:
    weight = one_weight([2.0])
    optimiser = spec.build([Group([weight], decays)])
    for gradient in gradients:
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        set_rate(optimiser, rate)
        optimiser.step()
    return weight.item()


def test_adam_by_hand() -> None:
    """Kingma & Ba 2015, algorithm 1, two steps."""
    spec = Adam(betas=(0.5, 0.75), eps=0.1)
    first = 2.0 - 0.1 * 4.0 / (4.0 + 0.1)  # corrected moments after one step are g and g²
    mean = (0.25 * 4.0 + 0.5 * -2.0) / (1 - 0.25)
    square = (0.1875 * 16.0 + 0.25 * 4.0) / (1 - 0.5625)
    second = first - 0.1 * mean / (square**0.5 + 0.1)
    assert updated(spec, True, [4.0, -2.0], 0.1) == pytest.approx(second, abs=1e-12)


def test_adamw_decays_weights_but_not_vectors() -> None:
    spec = AdamW(betas=(0.0, 0.0), eps=1e-30, weight_decay=0.5)
    assert updated(spec, True, [4.0], 0.1) == pytest.approx(2.0 * (1 - 0.1 * 0.5) - 0.1)
    assert updated(spec, False, [4.0], 0.1) == pytest.approx(2.0 - 0.1)


def test_sgd_with_momentum_by_hand() -> None:
    assert updated(SGD(momentum=0.5), True, [1.0, 1.0], 0.1) == pytest.approx(2.0 - 0.1 - 0.15)
    assert updated(SGD(weight_decay=0.25), True, [1.0], 0.1) == pytest.approx(2.0 - 0.1 * 1.5)


def test_optimisers_are_fused() -> None:
    for spec in (Adam(), AdamW(), SGD()):
        assert spec.build([Group([one_weight([1.0])], True)]).param_groups[0]["fused"]


def test_groups_may_have_their_own_rate() -> None:
    fast, slow = one_weight([1.0]), one_weight([1.0])
    optimiser = SGD().build([Group([fast], True), Group([slow], True, rate=0.1)])
    for weight in (fast, slow):
        weight.grad = torch.ones(1, dtype=torch.float64)
    set_rate(optimiser, 0.5)
    optimiser.step()
    assert (fast.item(), slow.item()) == pytest.approx((0.5, 0.95))


def test_only_matrices_decay() -> None:
    model = toy.make_model()
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = [(group.decays, group.maps, {names[p] for p in group.parameters}) for group in groups_of(model)]
    assert groups == [
        (True, True, {"hidden.weight"}),
        (True, False, {"embedding.weight"}),
        (False, False, {"hidden.bias", "norm.weight", "norm.bias", "output.bias"}),
    ]


def test_frozen_parameters_are_not_trained() -> None:
    model = toy.make_model()
    model.embedding.requires_grad_(False)
    assert all(p is not model.embedding.weight for group in groups_of(model) for p in group.parameters)


@pytest.mark.parametrize(
    ("clip", "expected"),
    [(None, [3.0, 4.0]), (10.0, [3.0, 4.0]), (5.0, [3.0, 4.0]), (2.5, [1.5, 2.0]), (0.5, [0.3, 0.4])],
)
def test_clipping_by_global_norm(clip: float | None, expected: list[float]) -> None:
    gradients = [torch.tensor([6.0]), torch.tensor([[8.0]])]
    scale_gradients(gradients, 2, 5.0, clip)
    assert [gradient.item() for gradient in gradients] == pytest.approx(expected)


def stepper(model: nn.Module, spec: OptimiserSpec, clip: float | None = None, rate: float = 0.1) -> Stepper:
    optimiser = spec.build(groups_of(model))
    return Stepper(model, toy.objective, optimiser, lambda step: rate, clip, 5, torch.device("cpu"))


def double_model() -> toy.Model:
    model = toy.make_model().double()
    model.dropout.p = 0.0
    return model


def taken(batches: list[Tensor], clip: float | None) -> tuple[Taken, dict[str, Tensor]]:
    model = double_model()
    placed = [Placed(0, index, toy.Batch(tokens, [])) for index, tokens in enumerate(batches)]
    result = stepper(model, SGD(), clip).take(1, placed, "")
    return result, {name: weight.detach() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("clip", [None, 0.01])
def test_many_batches_are_one_big_batch(clip: float | None) -> None:
    """Batches of unequal size: a mean of means would be something else."""
    tokens = torch.randint(toy.VOCABULARY, (11, 4), generator=torch.Generator().manual_seed(2))
    whole, expected = taken([tokens], clip)
    parts, weights = taken([tokens[:2], tokens[2:7], tokens[7:]], clip)
    assert parts.tokens == whole.tokens == 33
    assert (parts.loss, parts.norm) == pytest.approx((whole.loss, whole.norm), rel=1e-12)
    assert parts.parts["nll"] == pytest.approx(whole.parts["nll"], rel=1e-12)
    start = dict(double_model().named_parameters())
    for name, weight in weights.items():
        torch.testing.assert_close(weight, expected[name], rtol=0, atol=1e-14)
        assert not torch.equal(weight, start[name])


def test_a_clipped_step_has_the_norm_of_the_clip() -> None:
    tokens = torch.randint(toy.VOCABULARY, (5, 4), generator=torch.Generator().manual_seed(2))
    result, weights = taken([tokens], 0.01)
    assert result.norm > 0.01
    start = dict(double_model().named_parameters())
    moved = torch.cat([(weights[name] - start[name]).detach().flatten() for name in weights])
    assert moved.norm().item() == pytest.approx(0.1 * 0.01, rel=1e-9)


def test_loss_and_norm_are_means_over_predictions() -> None:
    tokens = torch.randint(toy.VOCABULARY, (5, 4), generator=torch.Generator().manual_seed(2))
    result, _ = taken([tokens], None)
    model = double_model()
    loss = toy.objective(model, toy.Batch(tokens, []), Progress(1, 0, 5)).loss / 15
    loss.backward()
    squares = sum(p.grad.square().sum() for p in model.parameters() if p.grad is not None)
    assert result.loss == pytest.approx(loss.item())
    assert result.norm == pytest.approx(squares.sqrt().item())


def test_randomness_is_a_function_of_seed_step_and_turn() -> None:
    drawn: list[float] = []

    @toy.Alone
    def objective(model: nn.Module, batch: toy.Batch, progress: Progress) -> Outcome:
        drawn.append(torch.rand(()).item())
        return toy.objective(model, batch, progress)

    batch = Placed(0, 0, toy.Data().epoch(0)[0])
    for step in (1, 2, 1):
        machine = stepper(toy.make_model(), SGD())
        machine.objective = objective
        machine.take(step, [batch, batch], "")
        torch.rand(3)
    assert drawn[:2] == drawn[4:]
    assert len(set(drawn)) == 4


def test_mixed_numbers_collide_nowhere_near() -> None:
    seen = {mix(seed, step, turn) for seed in range(20) for step in range(60) for turn in range(-1, 3)}
    assert len(seen) == 20 * 60 * 4
    assert all(0 <= value < 2**64 for value in seen)


@pytest.mark.parametrize("spec", [Adam(), AdamW(), SGD(momentum=0.9), SGD()])
def test_optimiser_memory_goes_by_name_and_back(spec: OptimiserSpec) -> None:
    """Two steps in a row equal one step, a move to another optimiser of other order, and the second step."""
    batches = [Placed(0, index, toy.Data().epoch(0)[index]) for index in range(2)]
    whole, moved = toy.make_model(), toy.make_model()
    machine = stepper(whole, spec)
    machine.take(1, batches[:1], "")
    machine.take(2, batches[1:], "")

    first = stepper(moved, spec)
    first.take(1, batches[:1], "")
    tensors = {name: tensor.clone() for name, tensor in optimiser_tensors(first.optimiser, moved).items()}
    second = stepper(moved, spec)
    reordered = [Group(group.parameters[::-1], group.decays) for group in reversed(groups_of(moved))]
    second.optimiser = spec.build(reordered)
    load_optimiser(second.optimiser, moved, tensors, Path("x"))
    second.take(2, batches[1:], "")
    for name, weight in whole.named_parameters():
        assert torch.equal(weight, moved.get_parameter(name)), name


def test_optimiser_memory_has_readable_names() -> None:
    model = toy.make_model()
    machine = stepper(model, Adam())
    machine.take(1, [Placed(0, 0, toy.Data().epoch(0)[0])], "")
    names = optimiser_tensors(machine.optimiser, model)
    assert {"hidden.weight.exp_avg", "hidden.weight.exp_avg_sq", "hidden.weight.step"} <= set(names)


def test_memory_of_unknown_parameters_is_refused_by_name() -> None:
    model = toy.make_model()
    optimiser = Adam().build(groups_of(model))
    with pytest.raises(RunError, match=r"run/last: .*other\.weight"):
        load_optimiser(optimiser, model, {"other.weight.exp_avg": torch.zeros(1)}, Path("run/last"))


def test_a_moment_must_be_one() -> None:
    with pytest.raises(UsageError, match=r"betas\.1: got 1\.0"):
        OptimiserSpec.from_dict({"kind": "adam", "betas": [0.9, 1.0]})


@pytest.mark.parametrize("spec", [Adam(betas=(0.1, 0.2)), AdamW(weight_decay=0.3), SGD(momentum=0.4)])
def test_specs_go_through_json(spec: OptimiserSpec) -> None:
    assert OptimiserSpec.from_json(spec.to_json()) == spec
