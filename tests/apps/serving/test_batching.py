"""Batches over requests: who is answered with whom, who leaves, and what one failure costs the others."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from regard.apps.serving.batching import Batcher, ClosedError, Job, QueueFullError, Row, Size
from regard.core.errors import DataError

SIZE = Size(budget=10, rows=100, linger=0.0, queue=4, deadline=60.0)


@dataclass(frozen=True)
class Shouting:
    """Answers in capitals, once it may."""

    name: str = "loud"
    may: threading.Event = field(default_factory=threading.Event, compare=False)
    batches: list[list[str]] = field(default_factory=list, compare=False)
    elsewhere: bool = False
    shares: list[float] = field(default_factory=list, compare=False)

    def do(self, rows: Sequence[Row], share: float) -> list[Any]:
        self.shares.append(share)
        assert self.may.wait(20)
        self.batches.append([row.text for row in rows])
        if any("bad" in row.text for row in rows):
            raise DataError("bad text", line=1)
        return [row.text.upper() for row in rows]


def job(work: Shouting, *texts: str, length: int = 2) -> Job:
    return Job(work, texts, [length] * len(texts), range(len(texts)))


def test_requests_share_batches_in_turn_and_within_the_budget() -> None:
    work, batcher = Shouting(), Batcher("test", SIZE)
    first = job(work, "first")
    batcher.submit(first)
    while not batcher.running:
        pass
    long, short, other = job(work, *"abcdefgh"), job(work, "x", "y"), job(Shouting("other", work.may), "z")
    for one in (long, short, other):
        batcher.submit(one)
    work.may.set()
    assert long.future.result(10) == list("ABCDEFGH")
    assert short.future.result(10) == ["X", "Y"]
    assert other.future.result(10) == ["Z"]
    assert work.batches == [["first"], ["a", "x", "b", "y", "c"], ["d", "e", "f", "g", "h"]]
    batcher.close()


def test_what_one_text_does_wrong_hurts_no_other() -> None:
    work, batcher = Shouting(), Batcher("test", SIZE)
    batcher.submit(first := job(work, "first"))
    good, bad, fine = job(work, "a", "b"), job(work, "c", "bad"), job(work, "d")
    for one in (good, bad, fine):
        batcher.submit(one)
    work.may.set()
    assert first.future.result(10) == ["FIRST"]
    assert good.future.result(10) == ["A", "B"]
    assert fine.future.result(10) == ["D"]
    with pytest.raises(DataError, match="bad text"):
        bad.future.result(10)
    assert batcher.waiting == 0
    batcher.close()


def test_a_full_queue_refuses_and_who_leaves_makes_room() -> None:
    work, batcher = Shouting(), Batcher("test", SIZE)
    batcher.submit(job(work, "first"))
    while not batcher.running:
        pass
    waiting = [job(work, str(number)) for number in range(4)]
    for one in waiting:
        batcher.submit(one)
    with pytest.raises(QueueFullError) as full:
        batcher.submit(job(work, "late"))
    assert full.value.seconds >= 1
    assert waiting[1].future.cancel()
    assert batcher.waiting == 3
    batcher.submit(late := job(work, "late"))
    work.may.set()
    assert late.future.result(10) == ["LATE"]
    assert not any("1" in batch for batch in work.batches)
    batcher.close()


def test_closing_finishes_what_was_accepted() -> None:
    work, batcher = Shouting(), Batcher("test", SIZE)
    jobs = [job(work, str(number)) for number in range(3)]
    for one in jobs:
        batcher.submit(one)
    batcher.close()
    with pytest.raises(ClosedError):
        batcher.submit(job(work, "late"))
    work.may.set()
    assert [one.future.result(10) for one in jobs] == [["0"], ["1"], ["2"]]
    batcher.join(10.0)


def test_texts_wait_a_moment_for_company() -> None:
    work = Shouting()
    work.may.set()
    batcher = Batcher("test", Size(budget=4, rows=100, linger=30.0, queue=4, deadline=60.0))
    one, other = job(work, "one"), job(work, "other")
    batcher.submit(one)
    assert not one.future.done()
    batcher.submit(other)  # the budget is reached: no reason to wait any longer
    assert other.future.result(10) == ["OTHER"]
    assert work.batches == [["one", "other"]]
    batcher.close()


def test_nobody_waits_for_more_than_a_batch_holds() -> None:
    work = Shouting()
    work.may.set()
    batcher = Batcher("test", Size(budget=1000, rows=3, linger=30.0, queue=9, deadline=60.0))
    jobs = [job(work, text) for text in "abc"]
    for one in jobs:
        batcher.submit(one)
    assert [one.future.result(10) for one in jobs] == [["A"], ["B"], ["C"]]
    assert work.batches == [["a", "b", "c"]]
    batcher.close()


def test_texts_that_wait_are_counted_until_they_are_taken_or_left() -> None:
    """More than can be answered in time is refused: what is answered, or has left, must not count."""
    work = Shouting()
    batcher = Batcher("test", Size(budget=10, rows=100, linger=0.0, queue=100, deadline=5.0))
    batcher.pace._tokens = batcher.pace._seconds = 1.0  # a token a second
    batcher.submit(first := job(work, "first"))
    while not batcher.running:
        pass
    batcher.submit(some := job(work, "a", "b"))
    batcher.submit(job(work, "c"))
    with pytest.raises(QueueFullError):
        batcher.submit(job(work, "d"))
    assert some.future.cancel()
    batcher.submit(last := job(work, "e"))
    work.may.set()
    assert first.future.result(10) == ["FIRST"]
    assert last.future.result(10) == ["E"]
    batcher.pace._tokens = batcher.pace._seconds = 1.0
    batcher.submit(late := job(work, "f"))
    assert late.future.result(10) == ["F"]
    batcher.close()


def test_empty_texts_are_work_too() -> None:
    work = Shouting()
    work.may.set()
    batcher = Batcher("test", SIZE)
    for _ in range(3):
        batcher.submit(empty := job(work, "", "", length=0))
        assert empty.future.result(10) == ["", ""]
    batcher.close()


def test_while_an_engine_searches_the_next_batch_is_handed_in() -> None:
    first, second = Shouting("first", elsewhere=True), Shouting("second", elsewhere=True)
    batcher = Batcher("test", SIZE)
    batcher.submit(one := job(first, "one"))
    until(lambda: batcher.running == 1)
    batcher.submit(two := job(second, "two"))
    until(lambda: batcher.running == 2)
    batcher.submit(three := job(second, "three"))
    second.may.set()
    assert two.future.result(10) == ["TWO"]
    assert three.future.result(10) == ["THREE"]  # overtakes what is still searched
    assert not one.future.done()
    first.may.set()
    assert one.future.result(10) == ["ONE"]
    assert (first.shares, second.shares) == ([1.0], [0.5, 0.5])  # who is alone has all of the engine
    batcher.close()


@pytest.mark.parametrize(("elsewhere", "sizes"), [(True, [5, 5]), (False, [10])])
def test_a_batch_leaves_some_for_the_next_where_an_engine_has_both(elsewhere: bool, sizes: list[int]) -> None:
    work = Shouting(elsewhere=elsewhere)
    batcher = Batcher("test", Size(budget=10_000, rows=100, linger=0.0, queue=9, deadline=60.0))
    batcher.submit(ten := job(work, *"abcdefghij", length=100))
    until(lambda: batcher.running == 10)
    work.may.set()
    assert ten.future.result(10) == list("ABCDEFGHIJ")
    assert sorted(map(len, work.batches), reverse=True) == sizes
    batcher.close()


def test_nobody_waits_for_the_last_of_those_who_come_back() -> None:
    """A hundred tokens are searched: seventy more are nearly half of all, and worth beginning with."""
    work = Shouting(elsewhere=True)
    batcher = Batcher("test", Size(budget=10_000, rows=100, linger=30.0, queue=9, deadline=60.0))
    batcher.submit(job(work, "first", length=100))
    until(lambda: batcher.running == 1)
    batcher.submit(job(work, "second", length=50))
    until(lambda: batcher._lingering)
    assert batcher.running == 1
    batcher.submit(last := job(work, "third", length=20))
    until(lambda: batcher.running == 3)
    work.may.set()
    assert last.future.result(10) == ["THIRD"]
    batcher.close()


def test_what_is_next_to_nothing_is_not_divided() -> None:
    work = Shouting(elsewhere=True)
    batcher = Batcher("test", Size(budget=10_000, rows=100, linger=0.0, queue=9, deadline=60.0))
    batcher.submit(ten := job(work, *"abcdefghij", length=6))
    work.may.set()
    assert ten.future.result(10) == list("ABCDEFGHIJ")
    assert len(work.batches) == 1
    batcher.close()


def test_what_our_own_steps_compute_is_computed_batch_by_batch_beside_an_engine() -> None:
    own, engine = Shouting("own"), Shouting("engine", elsewhere=True)
    batcher = Batcher("test", SIZE)
    batcher.submit(one := job(own, "one"))
    until(lambda: batcher.running == 1)
    batcher.submit(two := job(own, "two"))
    batcher.submit(far := job(engine, "far"))
    engine.may.set()
    assert far.future.result(10) == ["FAR"]  # a hand was free for it, not for the older one
    assert batcher.waiting == 1
    own.may.set()
    assert one.future.result(10) == ["ONE"]
    assert two.future.result(10) == ["TWO"]
    assert own.batches == [["one"], ["two"]]
    batcher.close()


def test_a_hand_that_is_free_takes_what_another_left() -> None:
    slow, other = Shouting("slow", elsewhere=True), Shouting("other", elsewhere=True)
    batcher = Batcher("test", Size(budget=100, rows=100, linger=0.1, queue=9, deadline=60.0))
    until(lambda: batcher._idle == 2)
    batcher.submit(job(slow, "a"))
    until(lambda: batcher._lingering)
    batcher.submit(quick := job(other, "b"))
    other.may.set()
    assert quick.future.result(10) == ["B"]
    slow.may.set()
    batcher.close()
    batcher.join(10.0)


def test_a_burst_is_taken_on_and_an_overload_that_lasts_is_not() -> None:
    work = Shouting()
    size = Size(budget=10, rows=100, linger=0.0, queue=100, deadline=60.0, crowd=8, patience=5.0)
    batcher = Batcher("test", size)
    batcher.pace._tokens = batcher.pace._seconds = 1.0  # a token a second
    batcher.submit(first := job(work, "first"))
    until(lambda: batcher.running == 1)
    burst = [job(work, str(number)) for number in range(9)]
    for one in burst:
        batcher.submit(one)
    batcher.pace._at_ease -= 10.0  # as if it had gone on for so long
    with pytest.raises(QueueFullError) as full:
        batcher.submit(job(work, "late"))
    assert full.value.seconds >= 1
    with pytest.raises(QueueFullError):
        batcher.check_room()
    batcher.pace._tokens = 100.0
    batcher.check_room()  # all of them are answered before anybody is out of patience
    batcher.pace._tokens = 1.0
    with pytest.raises(QueueFullError):
        batcher.check_room()
    for one in burst[2:]:
        one.future.cancel()
    batcher.submit(again := job(work, "again"))  # fewer than a crowd
    work.may.set()
    assert first.future.result(10) == ["FIRST"]
    assert again.future.result(10) == ["AGAIN"]
    until(lambda: batcher._idle == 2)
    batcher.pace._tokens = batcher.pace._seconds = 1.0
    batcher.pace._at_ease = batcher.pace._sent_away = time.monotonic() - 10.0
    with batcher._changed:  # who rests is not overloaded, even before it has woken up
        many = [job(work, letter) for letter in "abcdefghi"]
        for one in many:
            batcher.submit(one)
    assert [one.future.result(10) for one in many] == [[letter] for letter in "ABCDEFGHI"]
    until(lambda: batcher._inside == 0)
    batcher.close()


def test_closing_waits_for_what_could_not_be_begun_yet() -> None:
    work, batcher = Shouting(), Batcher("test", SIZE)
    batcher.submit(job(work, "one"))
    until(lambda: batcher.running == 1)
    batcher.submit(last := job(work, "two"))
    batcher.close()
    work.may.set()
    batcher.join(10.0)
    assert last.future.result(0) == ["TWO"]
    assert not any(thread.is_alive() for thread in batcher._threads)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)
