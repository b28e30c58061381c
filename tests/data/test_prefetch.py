"""The next items are made ahead, in order, and the thread goes when it is no longer needed."""

import threading
from collections.abc import Sequence

import pytest

from regard.data.prefetch import prefetch


class Squares(Sequence[int]):
    """Squares, that notes what was asked for; item ``broken`` fails."""

    def __init__(self, length: int, broken: int = -1) -> None:
        self.length, self.broken = length, broken
        self.asked: list[int] = []
        self.enough = threading.Event()

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:  # type: ignore[override]
        self.asked.append(index)
        if len(self.asked) >= 5:
            self.enough.set()
        if index == self.broken:
            raise ValueError(f"item {index} is broken")
        return index * index


def test_items_come_in_order_from_any_start() -> None:
    assert list(prefetch(Squares(13), start=0, ahead=4)) == [i * i for i in range(13)]
    assert list(prefetch(Squares(13), start=11)) == [121, 144]
    assert list(prefetch(Squares(13), start=13)) == []


def test_work_goes_ahead_but_not_further_than_told() -> None:
    squares = Squares(100)
    with prefetch(squares, ahead=4) as items:
        assert squares.enough.wait(timeout=10)
        assert len(squares.asked) == 5  # four are waiting, the fifth is in hand
        assert next(iter(items)) == 0


def test_an_exception_comes_out_where_it_happened() -> None:
    items = iter(prefetch(Squares(9, broken=3)))
    assert [next(items) for _ in range(3)] == [0, 1, 4]
    with pytest.raises(ValueError, match="item 3 is broken"):
        next(items)


def test_no_thread_stays_behind() -> None:
    before = threading.active_count()
    with prefetch(Squares(1000), ahead=2):
        pass
    for item in prefetch(Squares(1000), ahead=2):
        if item == 4:
            break
    list(prefetch(Squares(5)))
    with pytest.raises(ValueError, match="broken"):
        list(prefetch(Squares(5, broken=0)))
    assert threading.active_count() == before
