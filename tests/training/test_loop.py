"""The loop: what it leaves, when it ends, what it says, and that killing it changes nothing."""

import contextlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.core.errors import DataError, RunError, TrainingError, UsageError
from regard.objectives.objective import Outcome, Progress
from regard.training import checkpoint
from regard.training.averaging import average_last
from regard.training.events import Watcher
from regard.training.plan import AveragingSpec, CheckpointSpec, TrainingSpec, ValidationSpec
from regard.training.run_folder import RunFolder
from regard.training.schedules import Constant, Linear
from regard.training.signals import Interrupted, StopSignal
from regard.training.weights import named_weights, read_weights
from tests.training import toy
from tests.training.toy import SPEC, KillAt, Killed, log_of, print_of, run


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("reference") / "run"
    run(path)
    return print_of(path)


class Recorder(Watcher):
    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.validations: list[Any] = []
        self.notices: list[str] = []
        self.checkpoints: list[int] = []
        self.ends: list[Any] = []

    def on_step(self, event: Any) -> None:
        self.steps.append(event)

    def on_validation(self, event: Any) -> None:
        self.validations.append(event)

    def on_checkpoint(self, event: Any) -> None:
        self.checkpoints.append(event.step)

    def on_notice(self, event: Any) -> None:
        self.notices.append(event.message)

    def on_end(self, event: Any) -> None:
        self.ends.append(event)


def test_it_learns_and_leaves_the_best_weights_in_model_and_folder(tmp_path: Path) -> None:
    spec = TrainingSpec(steps=150, schedule=Constant(peak=0.03), validation=ValidationSpec(every=50))
    model = toy.make_model()
    result = run(tmp_path / "run", spec, model=model)
    assert result.scores["exact"] == 1.0
    assert result.best < 0.3
    assert toy.validate(model)["loss"] == result.best
    other = toy.make_model()
    RunFolder.open(tmp_path / "run").load_into(other)
    other.eval()
    assert toy.validate(other) == toy.validate(model)


def test_the_same_command_twice_gives_the_same_bits(tmp_path: Path, reference: dict[str, Any]) -> None:
    torch.manual_seed(12345)  # what the caller drew before must not matter
    torch.rand(17)
    run(tmp_path / "run")
    assert print_of(tmp_path / "run") == reference


def test_training_leaves_the_callers_random_numbers_alone(tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    run(tmp_path / "run")
    assert torch.equal(torch.rand(3), expected)


def test_the_seed_matters(tmp_path: Path, reference: dict[str, Any]) -> None:
    toy_seed, toy.SEED = toy.SEED, 6
    try:
        run(tmp_path / "run")
    finally:
        toy.SEED = toy_seed
    assert print_of(tmp_path / "run")["log"] != reference["log"]


KILLS = [
    *(("step", step) for step in range(1, 14)),
    *(("validation", step) for step in (3, 6, 9, 12, 13)),
    *(("checkpoint", step) for step in (0, 2, 3, 4, 12, 13)),
    ("end", 13),
]


@pytest.mark.parametrize(("event", "step"), KILLS)
def test_killed_anywhere_it_goes_on_to_the_same_bits(
    tmp_path: Path, reference: dict[str, Any], event: str, step: int
) -> None:
    with pytest.raises(Killed):
        run(tmp_path / "run", watchers=[KillAt(event, step)])
    run(tmp_path / "run")
    assert print_of(tmp_path / "run") == reference


def test_killed_again_and_again_it_still_ends_the_same(tmp_path: Path, reference: dict[str, Any]) -> None:
    for event, step in KILLS:
        with contextlib.suppress(Killed):  # or the event is already behind us
            run(tmp_path / "run", watchers=[KillAt(event, step)])
    run(tmp_path / "run")
    assert print_of(tmp_path / "run") == reference


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first = run(tmp_path / "run")
    before = (tmp_path / "run" / "log.jsonl").read_bytes()
    recorder, model = Recorder(), toy.make_model()
    second = run(tmp_path / "run", watchers=[recorder], model=model)
    assert second == first
    assert recorder.steps == []
    assert (tmp_path / "run" / "log.jsonl").read_bytes() == before
    assert toy.validate(model)["loss"] == second.best


def test_more_steps_go_on_as_if_they_had_been_planned(tmp_path: Path) -> None:
    long = SPEC.override(["steps=18", "averaging.ema=null", "averaging.last=0"])
    run(tmp_path / "long", long)
    run(tmp_path / "run", long.override(["steps=12"]))
    run(tmp_path / "run", long)
    ours, theirs = print_of(tmp_path / "run"), print_of(tmp_path / "long")
    assert ours["checkpoints/last/weights.safetensors"] == theirs["checkpoints/last/weights.safetensors"]
    assert ours["model.safetensors"] == theirs["model.safetensors"]


def test_a_folder_with_weights_but_without_checkpoints_is_left_alone(tmp_path: Path) -> None:
    run(tmp_path / "run")
    (tmp_path / "run" / "checkpoints").rename(tmp_path / "elsewhere")
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    with pytest.raises(RunError, match="no checkpoint to go on from"):
        run(tmp_path / "run")
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before


def test_the_last_damaged_training_goes_back_to_the_previous_and_says_so(
    tmp_path: Path, reference: dict[str, Any]
) -> None:
    path = tmp_path / "run"
    with pytest.raises(Killed):
        run(path, watchers=[KillAt("step", 9)])
    victim = path / "checkpoints" / "last" / "weights.safetensors"
    content = bytearray(victim.read_bytes())
    content[-3] ^= 4
    victim.write_bytes(content)
    recorder = Recorder()
    run(path, watchers=[recorder])
    assert len(recorder.notices) == 1
    assert str(victim) in recorder.notices[0]
    assert "previous" in recorder.notices[0]
    assert recorder.steps[0].step == 7
    assert print_of(path) == reference


def test_both_checkpoints_damaged_are_both_named(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(Killed):
        run(path, watchers=[KillAt("step", 9)])
    last, previous = path / "checkpoints/last/state.json", path / "checkpoints/previous/optimiser.safetensors"
    last.unlink()
    previous.write_bytes(previous.read_bytes()[:-1])
    with pytest.raises(RunError) as caught:
        run(path)
    assert str(last) in str(caught.value)
    assert str(previous) in str(caught.value)


def test_damaged_weights_of_the_averaging_window_are_told_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(Killed):
        run(path, watchers=[KillAt("step", 11)])
    victim = RunFolder.open(path).validated_weights(6)
    victim.write_bytes(victim.read_bytes()[:-1])
    recorder = Recorder()
    run(path, watchers=[recorder])
    assert len(recorder.notices) == 1
    assert victim.name in recorder.notices[0]


def test_what_the_log_holds(reference: dict[str, Any]) -> None:
    log = reference["log"]
    steps = [event for event in log if event["event"] == "step"]
    assert [event["step"] for event in steps] == list(range(1, 14))
    assert [event["step"] for event in log if event["event"] == "validation"] == [3, 6, 9, 12, 13, 13, 13]
    assert log[-1]["event"] == "end"
    assert log[-1]["reason"] == "steps"
    assert [event["epoch"] for event in steps] == [0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5]
    for event in steps:
        assert event["padding"] == 0.25
        assert event["parts"]["nll"] == pytest.approx(event["loss"])
        assert event["rate"] == pytest.approx(0.05 * min(event["step"] / 5, math.sqrt(5 / event["step"])))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_log_says_in_which_numbers_products_were_computed(tmp_path: Path, precision: str) -> None:
    run(tmp_path / "run", PLAIN.override([f"precision={precision}"]))
    first = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[0])
    assert (first["event"], first["precision"]) == ("start", precision)


def test_scores_that_are_not_finite_still_make_a_log_of_valid_json(tmp_path: Path) -> None:
    def scores(model: nn.Module) -> dict[str, float]:
        return {"loss": 1.0, "perplexity": math.inf}

    run(tmp_path / "run", SPEC.override(["steps=3", "averaging.last=0"]), validate=scores)
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    events = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert {"loss": 1.0, "perplexity": None} in [event.get("scores") for event in events]


def scripted(*values: float) -> Any:
    """Validation losses in order, then the last for ever."""
    left = list(values)

    def validation(model: nn.Module) -> dict[str, float]:
        return {"loss": left.pop(0) if len(left) > 1 else left[0]}

    return validation


PLAIN = TrainingSpec(steps=40, validation=ValidationSpec(every=2), checkpoints=CheckpointSpec(seconds=None))


def test_patience_ends_training_and_keeps_the_best(tmp_path: Path) -> None:
    spec = PLAIN.override(["validation.patience=3"])
    validation = scripted(3.0, 1.0, 2.0, 0.9, 1.5, 0.9, 1.1, 0.1)
    kept: dict[int, bytes] = {}

    class Keep(Watcher):
        def on_validation(self, event: Any) -> None:
            kept[event.step] = (tmp_path / "run" / "model.safetensors").read_bytes()

    result = run(tmp_path / "run", spec, validate=validation, watchers=[Keep()])
    assert (result.step, result.reason, result.best, result.best_step) == (14, "patience", 0.9, 8)
    assert kept[8] != kept[4]
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == kept[8]


def test_patience_survives_a_kill(tmp_path: Path) -> None:
    spec = PLAIN.override(["validation.patience=3"])
    with pytest.raises(Killed):
        run(tmp_path / "run", spec, validate=scripted(1.0, 2.0, 2.0, 9.0), watchers=[KillAt("checkpoint", 6)])
    result = run(tmp_path / "run", spec, validate=scripted(2.0))
    assert (result.step, result.best_step, result.reason) == (8, 2, "patience")


def test_a_metric_may_be_watched_and_higher_is_then_better(tmp_path: Path) -> None:
    values = iter([0.1, 0.5, 0.3, 0.5])

    def scores(model: nn.Module) -> dict[str, float]:
        return {"loss": 1.0, "exact": next(values)}

    spec = PLAIN.override(["steps=8", "validation.watch=exact"])
    result = run(tmp_path / "run", spec, validate=scores)
    assert (result.best, result.best_step, result.watch) == (0.5, 4, "exact")


def test_watching_what_validation_does_not_give_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no score 'bleu' to watch, only .*loss.* give --valid"):
        run(tmp_path / "run", PLAIN.override(["validation.watch=bleu"]))


def test_an_unknown_score_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'exact'"):
        PLAIN.override(["validation.watch=exakt"])


def test_training_without_an_end_is_refused() -> None:
    with pytest.raises(UsageError, match="give steps, epochs, minutes or"):
        TrainingSpec.from_dict({})


def test_minutes_end_training_and_count_over_continuations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("regard.training.loop.time.monotonic", lambda: now[0])

    class Clock(Watcher):
        def on_step(self, event: Any) -> None:
            now[0] += 10

    spec = TrainingSpec(minutes=1, checkpoints=CheckpointSpec(seconds=None, steps=1))
    with pytest.raises(Killed):
        run(tmp_path / "run", spec, watchers=[Clock(), KillAt("checkpoint", 4)])
    now[0] = 77.0
    result = run(tmp_path / "run", spec, watchers=[Clock()])
    assert (result.step, result.reason) == (6, "minutes")
    assert result.seconds == 60
    assert run(tmp_path / "run", spec).step == 6


def by_clock(path: Path, minutes: float, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Rates of a training that is given minutes, when every step takes a tenth of a second."""
    now = [0.0]
    monkeypatch.setattr("regard.training.loop.time.monotonic", lambda: now[0])

    class Clock(Watcher):
        def __init__(self) -> None:
            self.rates: list[float] = []

        def on_step(self, event: Any) -> None:
            now[0] += 0.1
            self.rates.append(event.rate)

    clock = Clock()
    spec = TrainingSpec(minutes=minutes, schedule=Linear(peak=0.01, warmup=5))
    assert run(path, spec, watchers=[clock]).reason == "minutes"
    return clock.rates


def test_minutes_plan_a_rate_that_falls_to_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = by_clock(tmp_path / "run", 1, monkeypatch)
    assert len(rates) == 600
    assert rates[4:20] == [0.01] * 16  # until it knows its speed
    left = [(601 - step) / 596 for step in range(21, 601)]
    assert rates[20:] == pytest.approx([0.01 * share for share in left])


def test_more_minutes_make_a_new_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert by_clock(tmp_path / "run", 0.5, monkeypatch)[-1] == pytest.approx(0, abs=1e-4)
    more = by_clock(tmp_path / "run", 1, monkeypatch)
    assert len(more) == 300
    assert more[0] == pytest.approx(0.005, rel=0.05)
    assert more[-1] == pytest.approx(0, abs=1e-4)


def test_the_plan_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("regard.training.loop.time.monotonic", lambda: now[0])

    class Clock(Watcher):
        def on_step(self, event: Any) -> None:
            now[0] += 0.1
            rates.append(event.rate)

    rates: list[float] = []
    spec = TrainingSpec(
        minutes=0.1, schedule=Linear(peak=0.01), checkpoints=CheckpointSpec(seconds=None, steps=10)
    )
    with pytest.raises(Killed):
        run(tmp_path / "run", spec, watchers=[Clock(), KillAt("checkpoint", 40)])
    before = len(rates)
    run(tmp_path / "run", spec, watchers=[Clock()])
    assert rates[before] == pytest.approx(rates[before - 1], rel=0.1)


def test_checkpoints_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("regard.training.loop.time.monotonic", lambda: now[0])

    class Clock(Watcher):
        def on_step(self, event: Any) -> None:
            now[0] += 4

    recorder = Recorder()
    spec = TrainingSpec(steps=7, checkpoints=CheckpointSpec(seconds=10))
    run(tmp_path / "run", spec, watchers=[Clock(), recorder])
    assert recorder.checkpoints == [0, 3, 6, 7, 7]


class Ema:
    """The moving average, by its definition as a sum over all weights seen."""

    def __init__(self, decay: float, seen: list[dict[str, torch.Tensor]]) -> None:
        shares = [decay ** (len(seen) - 1 - i) for i in range(len(seen))]
        self.weights = {
            name: sum(share * w[name].double() for share, w in zip(shares, seen, strict=True)) / sum(shares)
            for name in seen[0]
        }


def best_of(variant: str) -> Any:
    """Validations that prefer one kind of weights, told apart by the order in which they are tried."""
    order = {"trained": [1.0, 1.0, 2.0, 2.0], "ema": [2.0, 2.0, 1.0, 2.0], "average": [2.0, 2.0, 2.0, 1.0]}
    return scripted(*order[variant])


@pytest.mark.parametrize("variant", ["trained", "ema", "average"])
def test_averages_compete_at_the_end(tmp_path: Path, variant: str) -> None:
    model = toy.make_model()
    seen: list[dict[str, torch.Tensor]] = []

    class See(Watcher):
        def on_step(self, event: Any) -> None:
            seen.append(
                {name: w.clone() for name, w in named_weights(model).items() if w.is_floating_point()}
            )

    spec = TrainingSpec(steps=4, validation=ValidationSpec(every=2), averaging=AveragingSpec(ema=0.7, last=2))
    result = run(tmp_path / "run", spec, validate=best_of(variant), model=model, watchers=[See()])
    assert result.variant == variant
    expected = {
        "trained": seen[1],
        "ema": Ema(0.7, seen).weights,
        "average": {name: (seen[1][name].double() + seen[3][name].double()) / 2 for name in seen[0]},
    }[variant]
    stored = read_weights(tmp_path / "run" / "model.safetensors")
    for name, tensor in expected.items():
        torch.testing.assert_close(stored[name].double(), tensor.double(), rtol=1e-6, atol=1e-7)
        assert torch.equal(named_weights(model)[name], stored[name])


@pytest.mark.parametrize("variant", ["trained", "ema", "average"])
def test_the_checkpoint_holds_trained_weights_whatever_was_best(tmp_path: Path, variant: str) -> None:
    model = toy.make_model()
    trained: dict[str, torch.Tensor] = {}

    class See(Watcher):
        def on_step(self, event: Any) -> None:
            trained.update({name: weight.clone() for name, weight in named_weights(model).items()})

    spec = TrainingSpec(steps=4, validation=ValidationSpec(every=2), averaging=AveragingSpec(ema=0.7, last=2))
    run(tmp_path / "run", spec, validate=best_of(variant), model=model, watchers=[See()])
    stored = checkpoint.read(tmp_path / "run" / "checkpoints" / "last").weights
    for name, weight in trained.items():
        assert torch.equal(weight, stored[name])


def test_only_the_window_is_kept(tmp_path: Path, reference: dict[str, Any]) -> None:
    assert reference["state"]["window"] == [9, 12, 13]
    run(tmp_path / "run")
    folder = RunFolder.open(tmp_path / "run")
    assert average_last([folder.validated_weights(step) for step in (9, 12, 13)])
    assert reference["validated"] == [folder.validated_weights(step).name for step in (9, 12, 13)]


def poisoned(at_step: int, kind: str) -> Any:
    @toy.Alone
    def objective(model: nn.Module, batch: toy.Batch, progress: Progress) -> Outcome:
        outcome = toy.objective(model, batch, progress)
        if progress.step != at_step or len(batch.rows) != 4:
            return outcome
        if kind == "loss":
            return Outcome(outcome.loss * math.nan, outcome.count, {})
        weight = model.get_parameter("hidden.weight")
        return Outcome(outcome.loss + (weight - weight.detach()).abs().sqrt().sum(), outcome.count, {})

    return objective


@pytest.mark.parametrize("kind", ["loss", "gradient"])
def test_what_is_not_finite_stops_training_before_harm_is_done(tmp_path: Path, kind: str) -> None:
    spec = SPEC.override(["accumulate=5"])
    data = toy.Data().epoch(2)
    guilty = [index for index in range(5) if len(data[index].rows) == 4]
    assert 0 < len(guilty) < 5
    model = toy.make_model()
    weights: list[dict[str, torch.Tensor]] = []

    class See(Watcher):
        def on_step(self, event: Any) -> None:
            weights.append({name: tensor.clone() for name, tensor in named_weights(model).items()})

    with pytest.raises(TrainingError) as caught:
        run(tmp_path / "run", spec, objective=poisoned(3, kind), model=model, watchers=[See()])
    message = str(caught.value)
    assert message.startswith("step 3: the ")
    assert "nan" in message
    for index in guilty:
        assert f"epoch 2, batch {index}, rows {100 * index}, {100 * index + 1}" in message
    if kind == "loss":
        innocent = next(index for index in range(5) if index not in guilty)
        assert f"batch {innocent}," not in message
    assert str(tmp_path / "run" / "checkpoints" / "last") in message
    for name, tensor in named_weights(model).items():
        assert name == "calls" or torch.equal(tensor, weights[-1][name])
    run(tmp_path / "run", spec)  # the last good checkpoint indeed loads


def test_a_validation_that_is_not_finite_stops_training(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"step 2, epoch 0: the validation loss is nan.*checkpoints/last"):
        run(tmp_path / "run", PLAIN, validate=scripted(math.nan))


class StopAt(Watcher):
    def __init__(self, stop: StopSignal, step: int) -> None:
        self._stop, self._step = stop, step

    def on_step(self, event: Any) -> None:
        if event.step == self._step:
            self._stop.request(15)


@pytest.mark.parametrize("step", [1, 3, 8, 13])
def test_asked_to_stop_it_saves_and_goes_on_to_the_same_bits(
    tmp_path: Path, reference: dict[str, Any], step: int
) -> None:
    stop, recorder = StopSignal(), Recorder()
    with pytest.raises(Interrupted, match=f"SIGTERM after step {step};.*same command") as caught:
        run(tmp_path / "run", watchers=[StopAt(stop, step), recorder], stop=stop)
    assert caught.value.exit_code == 143
    assert recorder.steps[-1].step == step
    assert recorder.checkpoints[-1] == step
    run(tmp_path / "run")
    assert print_of(tmp_path / "run") == reference


@pytest.mark.parametrize("call", [1, 3, 6, 7])
def test_a_validation_is_left_at_once_and_done_again(
    tmp_path: Path, reference: dict[str, Any], call: int
) -> None:
    stop, calls = StopSignal(), []

    def validation(model: nn.Module) -> dict[str, float]:
        calls.append(None)
        if len(calls) == call:
            stop.request(2)
            pytest.fail("the validation should have been left")
        return toy.validate(model)

    with pytest.raises(Interrupted) as caught:
        run(tmp_path / "run", validate=validation, stop=stop)
    assert caught.value.exit_code == 130
    run(tmp_path / "run")
    assert print_of(tmp_path / "run") == reference


def test_two_trainings_in_one_folder_are_refused(tmp_path: Path) -> None:
    class Intruder(Watcher):
        def on_step(self, event: Any) -> None:
            with pytest.raises(UsageError, match="another process is training"):
                run(tmp_path / "run")

    run(tmp_path / "run", SPEC.override(["steps=1"]), watchers=[Intruder()])


def test_data_without_batches_is_refused(tmp_path: Path) -> None:
    class Nothing:
        def epoch(self, number: int) -> list[toy.Batch]:
            return []

    with pytest.raises(DataError, match="no batch in epoch 0"):
        run(tmp_path / "run", data=Nothing())


def test_a_model_that_is_all_frozen_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no parameter to train"):
        run(tmp_path / "run", model=toy.make_model().requires_grad_(False))


def test_prefetched_batches_come_from_the_place_where_it_goes_on(
    tmp_path: Path, reference: dict[str, Any]
) -> None:
    starts: list[int] = []
    closed: list[bool] = []

    def prefetch(sequence: Any, start: int) -> Any:
        starts.append(start)
        try:
            for index in range(start, len(sequence)):
                yield sequence[index]
        finally:
            closed.append(True)

    with pytest.raises(Killed):
        run(tmp_path / "run", watchers=[KillAt("step", 3)], prefetch=prefetch)
    assert (starts, len(closed)) == ([0, 0], 2)
    run(tmp_path / "run", prefetch=prefetch)
    assert starts[2] == 4  # the checkpoint after step 2 knows of 4 batches
    assert len(closed) == len(starts)
    assert print_of(tmp_path / "run") == reference


def test_log_of_a_run_that_went_on_says_so(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run(tmp_path / "run", watchers=[KillAt("step", 8)])
    run(tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["event"] == "start"] == [0, 6]
    assert len(log_of(tmp_path / "run")) == 13 + 7 + 1
