"""The next item is made while one is in use; nothing but speed depends on that."""

import threading

import pytest

from regard.data.one_ahead import OneAhead


class Maker:
    """Makes numbers, notes which, fails at ``broken``, and waits to be stopped at ``endless``."""

    def __init__(self, broken: int = -1, endless: int = -1) -> None:
        self.broken, self.endless = broken, endless
        self.asked: list[int] = []

    def __call__(self, number: int, stop: threading.Event) -> str:
        self.asked.append(number)
        if number == self.endless:
            assert stop.wait(timeout=20), "somebody stops it"
        if number == self.broken:
            raise ValueError(f"item {number} is broken")
        return f"item {number}"


def making() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("making")]


def test_items_come_in_any_order_each_made_once_if_asked_in_turn() -> None:
    make = Maker()
    ahead = OneAhead(make)
    assert [ahead.get(n) for n in (3, 4, 5, 5, 6)] == ["item 3", "item 4", "item 5", "item 5", "item 6"]
    ahead.close()
    assert make.asked == [3, 4, 5, 6, 7]
    assert [ahead.get(n) for n in (9, 2, 6)] == ["item 9", "item 2", "item 6"]
    ahead.close()
    assert not making()


def test_never_more_than_one_ahead() -> None:
    make = Maker(endless=1)
    ahead = OneAhead(make)
    for _ in range(3):
        assert ahead.get(0) == "item 0"
    assert len(making()) == 1
    assert ahead.get(5) == "item 5"
    ahead.close()
    assert not making()
    assert make.asked == [0, 1, 5, 6]


def test_closing_ends_the_thread_whatever_it_does() -> None:
    ahead = OneAhead(Maker(endless=1))
    assert ahead.get(0) == "item 0"
    assert len(making()) == 1
    ahead.close()
    assert not making()


def test_looking_begins_nothing() -> None:
    make = Maker()
    ahead = OneAhead(make)
    assert ahead.peek(0) == "item 0"
    assert not making()
    assert ahead.get(0) == "item 0"
    ahead.close()
    assert make.asked == [0, 1]


def test_an_error_belongs_to_its_item() -> None:
    ahead = OneAhead(Maker(broken=1))
    assert ahead.get(0) == "item 0"
    for _ in range(2):
        with pytest.raises(ValueError, match="item 1 is broken"):
            ahead.get(1)
    assert ahead.get(2) == "item 2"
    ahead.close()
    assert not making()
