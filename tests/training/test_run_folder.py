"""Run folders: created whole, opened only if unharmed, never mixed with another run."""

import errno
import json
import os
import random
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.core.errors import RunError, TrainingError, UsageError
from regard.training import durable, run_folder
from regard.training.run_folder import RunFolder, load_weights
from regard.training.weights import named_weights
from tests.training import toy
from tests.training.toy import WholeSpec, make_model

FILES = {"tokenizer.json": b'{"model": "bpe"}', "labels.txt": "grün\n".encode()}


def create(path: Path, spec: WholeSpec = WholeSpec(), seed: int = 5, fingerprint: str = "f1") -> RunFolder:  # noqa: B008
    return RunFolder.create(path, spec, seed, fingerprint, FILES, ["training.steps"])


def test_what_is_created_is_opened(tmp_path: Path) -> None:
    create(tmp_path / "deep" / "run")
    run = RunFolder.open(tmp_path / "deep" / "run")
    assert WholeSpec.from_dict(run.record.spec) == WholeSpec()
    assert (run.record.seed, run.record.fingerprint) == (5, "f1")
    assert run.record.versions["torch"].startswith(torch.__version__.split("+")[0])
    assert {"python", "regard", "tokenizers"} <= run.record.versions.keys()
    assert {name: run.read_file(name) for name in FILES} == FILES
    assert sorted(path.name for path in run.path.iterdir()) == ["labels.txt", "regard.json", "tokenizer.json"]


def test_regard_json_is_plain_json_with_a_format(tmp_path: Path) -> None:
    create(tmp_path / "run")
    content = json.loads((tmp_path / "run" / "regard.json").read_text())
    assert content["format"] == 1
    assert content["spec"]["width"] == toy.WIDTH


def test_the_same_run_is_opened_again(tmp_path: Path) -> None:
    create(tmp_path / "run")
    before = (tmp_path / "run" / "regard.json").read_bytes()
    assert create(tmp_path / "run").record.seed == 5
    assert (tmp_path / "run" / "regard.json").read_bytes() == before


def test_a_different_run_is_refused_with_all_differences(tmp_path: Path) -> None:
    create(tmp_path / "run")
    before = (tmp_path / "run" / "regard.json").read_bytes()
    other = WholeSpec().override(["width=9", "training.schedule.peak=0.25", "training.steps=99"])
    with pytest.raises(UsageError) as caught:
        create(tmp_path / "run", other, seed=6, fingerprint="f2")
    message = str(caught.value)
    assert "width is 7 there, 9 now" in message
    assert "training.schedule.peak is 0.05 there, 0.25 now" in message
    assert "seed is 5 there, 6 now" in message
    assert "fingerprint of the data is 'f1' there, 'f2' now" in message
    assert "training.steps" not in message
    assert (tmp_path / "run" / "regard.json").read_bytes() == before


@pytest.mark.parametrize("change", [{"seed": 6}, {"fingerprint": "f2"}])
def test_other_seed_or_data_alone_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    create(tmp_path / "run")
    with pytest.raises(UsageError, match="holds a different run"):
        create(tmp_path / "run", **change)  # type: ignore[arg-type]


def test_what_may_differ_is_written_down(tmp_path: Path) -> None:
    create(tmp_path / "run")
    longer = WholeSpec().override(["training.steps=99"])
    assert create(tmp_path / "run", longer).record.spec == longer.to_dict()
    assert RunFolder.open(tmp_path / "run").record.spec == longer.to_dict()
    assert RunFolder.open(tmp_path / "run").read_file("labels.txt") == FILES["labels.txt"]


def test_what_may_differ_are_fields_that_exist() -> None:
    assert "training.steps" in toy.SPEC.may_differ()
    known = WholeSpec().paths()
    assert set(toy.SPEC.may_differ()) <= set(known)


def test_someone_elses_folder_is_left_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match=r"not empty and holds no run \(it holds thesis.tex\)"):
        create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    create(tmp_path)
    RunFolder.open(tmp_path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        create(tmp_path / "run")


def test_what_is_no_run_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such folder"):
        RunFolder.open(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"holds no regard\.json"):
        RunFolder.open(tmp_path)


class Gone(BaseException):
    pass


@pytest.mark.parametrize("moment", range(1, 14))
def test_killed_while_creating_it_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    left = [moment]

    def limited(original):  # type: ignore[no-untyped-def]
        def call(*args, **options):  # type: ignore[no-untyped-def]
            left[0] -= 1
            if left[0] <= 0:
                raise Gone
            return original(*args, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("fsync", "replace", "mkdir", "unlink"):
            patch.setattr(f"os.{name}", limited(getattr(os, name)))
        try:
            create(tmp_path / "run")
        except Gone:
            assert moment <= 12
    create(tmp_path / "run")
    run = RunFolder.open(tmp_path / "run")
    assert {name: run.read_file(name) for name in FILES} == FILES


def test_a_flipped_bit_of_regard_json_is_refused_by_name(tmp_path: Path) -> None:
    create(tmp_path / "run")
    path = tmp_path / "run" / "regard.json"
    good = path.read_bytes()
    for bit in range(0, 8 * len(good), 13):  # in every byte or the next, and every place within bytes
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        with pytest.raises(RunError, match=r"regard\.json: damaged"):
            RunFolder.open(tmp_path / "run")


@pytest.mark.parametrize("name", [*FILES, "model.safetensors"])
def test_a_flipped_bit_in_any_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    create(tmp_path / "run").save_weights(named_weights(make_model()))
    run = RunFolder.open(tmp_path / "run")
    run.verify()
    path = tmp_path / "run" / name
    good = path.read_bytes()
    for bit in random.Random(name).sample(range(8 * len(good)), k=min(80, 8 * len(good))):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        with pytest.raises(RunError, match=f"{path}: damaged"):
            run.verify()
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(RunError, match=f"{path}: damaged"):
        run.verify()
    path.unlink()
    with pytest.raises(RunError, match=f"{path}: missing"):
        run.verify()


def test_a_file_that_is_not_of_the_run_is_refused(tmp_path: Path) -> None:
    run = create(tmp_path / "run")
    with pytest.raises(
        RunError, match=r"vocabulary\.txt is not part of this run; tokenizer\.json, labels\.txt"
    ):
        run.read_file("vocabulary.txt")


def rewritten(path: Path, **changes: object) -> None:
    content = json.loads((path / "regard.json").read_text()) | {"sha256": durable.UNSEALED} | changes
    (path / "regard.json").write_bytes(durable.seal(json.dumps(content).encode()))


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "run")
    rewritten(tmp_path / "run", format=2)
    with pytest.raises(RunError, match=r"newer regard \(format 2; this one reads up to 1\)"):
        RunFolder.open(tmp_path / "run")


def test_an_older_format_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(tmp_path / "run")
    rewritten(tmp_path / "run", format=0, seed="five")
    monkeypatch.setitem(run_folder.MIGRATIONS, 0, lambda content: content | {"seed": 5})
    assert RunFolder.open(tmp_path / "run").record.seed == 5


def test_a_full_disk_leaves_the_weights_before(tmp_path: Path) -> None:
    run = create(tmp_path / "run")
    run.save_weights({"w": torch.ones(3)})

    def full(path: Path, content: bytes) -> None:
        durable.write_synced(path, content[:50])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    failing = RunFolder(run.path, run.record, full)
    with pytest.raises(TrainingError, match=r"model\.safetensors: cannot be written: No space left"):
        failing.save_weights({"w": torch.zeros(3)})
    assert run.read_weights()["w"].tolist() == [1.0, 1.0, 1.0]
    assert "model.safetensors" in {path.name for path in run.path.iterdir()}
    assert not [path for path in run.path.iterdir() if "writing" in path.name]


def test_what_a_killed_write_left_is_cleaned_up(tmp_path: Path) -> None:
    run = create(tmp_path / "run")
    run.save_weights({"w": torch.ones(3)})
    before = sorted(path.name for path in run.path.iterdir())
    (run.path / ".model.safetensors.writing").write_bytes(b"half")
    (run.path / "checkpoints" / ".writing").mkdir(parents=True)
    run.clean()
    assert sorted(path.name for path in run.path.iterdir()) == sorted([*before, "checkpoints"])
    assert list((run.path / "checkpoints").iterdir()) == []


def test_tied_weights_are_stored_once_and_come_back_tied(tmp_path: Path) -> None:
    run, model = create(tmp_path / "run"), make_model()
    run.save_weights(named_weights(model))
    assert "output.weight" not in run.read_weights()
    other = toy.Model()
    run.load_into(other)
    assert other.output.weight is other.embedding.weight
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])


def test_weights_of_another_model_are_refused_with_names_and_both_shapes(tmp_path: Path) -> None:
    run, model = create(tmp_path / "run"), make_model()
    tensors = dict(named_weights(model))
    del tensors["norm.bias"]
    tensors["extra"] = torch.zeros(2)
    tensors["hidden.weight"] = torch.zeros(3, 5)
    run.save_weights(tensors)
    before = {name: tensor.clone() for name, tensor in named_weights(model).items()}
    with pytest.raises(RunError) as caught:
        run.load_into(model)
    message = str(caught.value)
    assert "missing: norm.bias" in message
    assert "not in the model: extra" in message
    assert "hidden.weight is [3, 5] float32 in the file, [7, 7] float32 in the model" in message
    for name, tensor in named_weights(model).items():
        assert torch.equal(tensor, before[name])


def test_starting_from_another_run_takes_what_fits_and_tells_the_rest(tmp_path: Path) -> None:
    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Linear(toy.WIDTH, toy.WIDTH)
            self.output = nn.Linear(toy.WIDTH, 3)
            self.head = nn.Linear(3, 2)

    run, theirs, ours = create(tmp_path / "run"), make_model(), Other()
    run.save_weights(named_weights(theirs))
    transfer = load_weights(ours, tmp_path / "run")
    assert transfer.taken == ["hidden.weight", "hidden.bias"]
    assert transfer.untouched == ["output.weight", "output.bias", "head.weight", "head.bias"]
    assert {"embedding.weight", "norm.weight", "output.bias"} <= set(transfer.unused)
    assert torch.equal(ours.hidden.weight, theirs.hidden.weight)


def test_what_reads_goes_where_it_is_read_with(tmp_path: Path) -> None:
    class Reads(nn.Module):
        def __init__(self, **parts: nn.Module) -> None:
            super().__init__()
            for name, part in parts.items():
                self.add_module(name, part)

    run = create(tmp_path / "run")
    theirs = Reads(decoder=nn.Linear(3, 3), head=nn.Linear(3, 2))
    run.save_weights(named_weights(theirs))
    ours = Reads(encoder=nn.Linear(3, 3))
    transfer = load_weights(ours, tmp_path / "run", ("decoder", "encoder"))
    assert transfer.taken == ["encoder.weight", "encoder.bias"]
    assert set(transfer.unused) == {"head.weight", "head.bias"}
    assert torch.equal(ours.encoder.weight, theirs.decoder.weight)
    both = Reads(encoder=nn.Linear(3, 3), decoder=nn.Linear(3, 3))
    assert load_weights(both, tmp_path / "run", ("decoder", "encoder")).taken == [
        "decoder.weight",
        "decoder.bias",
    ]


def test_a_reader_goes_over_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    class Reads(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.encoder = nn.ModuleDict({"embedding": nn.Linear(3, 3), "stack": nn.Linear(3, width)})

    create(tmp_path / "run").save_weights(named_weights(Reads(4)))
    with pytest.raises(UsageError, match=r"encoder\.stack\.weight is \[4, 3\] float32 there, but \[5, 3\]"):
        load_weights(Reads(5), tmp_path / "run", ("encoder", "encoder"))


def test_starting_from_a_run_of_which_nothing_fits_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "run").save_weights(named_weights(make_model()))
    with pytest.raises(UsageError, match="none of its 7 weights has a name and shape of this model"):
        load_weights(nn.Linear(2, 2), tmp_path / "run")


def test_the_log_is_cut_where_a_checkpoint_ends(tmp_path: Path) -> None:
    run = create(tmp_path / "run")
    assert run.log_size() == 0
    run.cut_log(5)
    run.log_path.write_text("one\ntwo\nthr")
    assert run.log_size() == 11
    run.cut_log(8)
    assert run.log_path.read_text() == "one\ntwo\n"
    run.cut_log(100)
    assert run.log_path.read_text() == "one\ntwo\n"
