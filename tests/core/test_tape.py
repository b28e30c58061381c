"""A tape sees values by name, changes them when asked, and costs nothing when closed."""

import threading

import pytest
import torch
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.tape import Tape, watching


class Doubler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.watched = 0

    def forward(self, x: Tensor) -> Tensor:
        watch = watching(self)
        if watch is not None:
            self.watched += 1
            x = watch("doubled", 2 * x)
            return watch("again", x)
        return 2 * x


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Doubler(), Doubler()])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        watch = watching(self)
        return x if watch is None else watch("out", x)


def test_records_by_name_in_order_of_calls() -> None:
    chain = Chain()
    with Tape(chain) as tape:
        chain(torch.tensor(1.0))
        chain(torch.tensor(5.0))
    assert {name: [float(value) for value in seen] for name, seen in tape.records.items()} == {
        "layers.0.doubled": [2, 10],
        "layers.0.again": [2, 10],
        "layers.1.doubled": [4, 20],
        "layers.1.again": [4, 20],
        "out": [4, 20],
    }
    assert [float(value) for value in tape["layers.1.doubled"]] == [4, 20]
    assert list(tape.ending_with("doubled")) == ["layers.0.doubled", "layers.1.doubled"]
    assert list(tape.ending_with("out")) == ["out"]
    assert tape.ending_with("ubled") == {}


def test_an_edit_changes_the_output_and_what_is_recorded() -> None:
    chain = Chain()
    with Tape(chain, edits={"layers.0.doubled": lambda value: value * 0 + 7}) as tape:
        assert float(chain(torch.tensor(1.0))) == 14
    assert float(tape["layers.0.doubled"][0]) == 7
    assert float(tape["layers.1.doubled"][0]) == 14
    assert float(chain(torch.tensor(1.0))) == 4


def test_nothing_is_recorded_or_watched_when_no_tape_is_open() -> None:
    chain = Chain()
    tape = Tape(chain)
    chain(torch.tensor(1.0))
    with tape:
        pass
    chain(torch.tensor(1.0))
    assert tape.records == {}
    assert [layer.watched for layer in chain.layers] == [0, 0]


def test_records_hold_no_graph_but_the_output_does() -> None:
    chain, x = Chain(), torch.tensor(1.0, requires_grad=True)
    with Tape(chain) as tape:
        y = chain(x)
    assert not any(value.requires_grad for seen in tape.records.values() for value in seen)
    y.backward()
    assert x.grad is not None
    assert float(x.grad) == 4


def test_a_nested_tape_takes_over_and_gives_back() -> None:
    chain = Chain()
    with Tape(chain) as outer:
        chain(torch.tensor(1.0))
        with Tape(chain, edits={"out": lambda value: value + 1}) as inner:
            assert float(chain(torch.tensor(2.0))) == 9
        chain(torch.tensor(3.0))
    assert [float(value) for value in outer["out"]] == [4, 12]
    assert [float(value) for value in inner["out"]] == [9]


def test_a_tape_closes_when_the_model_fails() -> None:
    chain = Chain()
    with pytest.raises(RuntimeError, match="on purpose"), Tape(chain):
        raise RuntimeError("on purpose")
    assert watching(chain) is None


def test_a_tape_of_a_part_does_not_see_the_others() -> None:
    chain = Chain()
    with Tape(chain.layers[1]) as tape:
        assert float(chain(torch.tensor(1.0))) == 4
    assert sorted(tape.records) == ["again", "doubled"]
    assert float(tape["doubled"][0]) == 4


def test_a_tape_belongs_to_its_thread() -> None:
    """A server answers many requests at once: none may record into another's tape."""
    chain, meeting = Chain(), threading.Barrier(2)
    seen: dict[str, list[float]] = {}

    def look(name: str, start: float) -> None:
        with Tape(chain) as tape:
            meeting.wait(timeout=10)
            chain(torch.tensor(start))
            meeting.wait(timeout=10)
        seen[name] = [float(value) for value in tape["out"]]

    threads = [threading.Thread(target=look, args=(name, start)) for name, start in (("a", 1.0), ("b", 5.0))]
    with Tape(chain) as mine:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == {"a": [4], "b": [20]}
    assert mine.records == {}


def test_an_edit_that_nobody_used_is_an_error() -> None:
    chain = Chain()
    with (
        pytest.raises(UsageError, match=r"'layers.0.doubledd' .did you mean 'layers.0.doubled'"),
        Tape(chain, edits={"layers.0.doubledd": lambda value: value}),
    ):
        chain(torch.tensor(1.0))


def test_a_tape_may_change_without_keeping() -> None:
    chain = Chain()
    with Tape(chain, edits={"out": lambda value: value + 1}, keeps=False) as tape:
        assert float(chain(torch.tensor(1.0))) == 5
    assert "layers.0.doubled" in tape.records
    assert not any(tape.records.values())
