"""Words are cut once, however many texts they stand in, and what is remembered has an end."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from regard.data.remembered import LONGEST, Remembered


class Cutter:
    """Cuts into characters, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, words: list[str]) -> list[list[int]]:
        self.asked += words
        return [[ord(character) for character in word] for word in words]


def cut(text: str) -> list[int]:
    return [ord(character) for character in text if character != " "]


def test_a_word_is_cut_once() -> None:
    cutter = Cutter()
    remembered = Remembered(cutter)
    for texts in (["a b a", "b c"], ["c a"], ["", " "], ["c d"]):
        assert remembered.encode_many(texts) == [cut(text) for text in texts]
    assert sorted(cutter.asked) == ["", "a", "b", "c", "d"]


def test_what_is_known_takes_no_room_twice() -> None:
    cutter = Cutter()
    remembered = Remembered(cutter, most=4)
    for text in ("a b", "b c", "a b c d", "d c b a"):
        remembered.encode_many([text])
    assert sorted(cutter.asked) == ["a", "b", "c", "d"]


def test_what_is_long_is_cut_but_not_remembered() -> None:
    cutter, long = Cutter(), "x" * (LONGEST + 1)
    remembered = Remembered(cutter)
    for _ in range(2):
        assert remembered.encode_many([f"a {long}", "b"]) == [cut(f"a{long}"), cut("b")]
    assert sorted(cutter.asked) == ["a", "b", long, long]


@given(st.lists(st.lists(st.text("abc ", max_size=9), max_size=4), max_size=6), st.integers(0, 5))
def test_with_little_room_the_answers_are_the_same(batches: list[list[str]], most: int) -> None:
    remembered, room = Remembered(Cutter(), most), most
    for texts in batches:
        assert remembered.encode_many(texts) == [cut(text) for text in texts]
        room = max(room, len({word for text in texts for word in text.split(" ")}))
        assert len(remembered._known) <= room


def test_who_looks_something_up_while_another_begins_anew_finds_it() -> None:
    """The first is asked for a new word and waits; the second fills the room meanwhile."""
    waits, filled = threading.Event(), threading.Event()

    def slow(words: list[str]) -> list[list[int]]:
        if words == ["new"]:
            waits.set()
            assert filled.wait(10)
        return [cut(word) for word in words]

    remembered, found = Remembered(slow, most=3), list[list[list[int]]]()
    remembered.encode_many(["old"])
    first = threading.Thread(target=lambda: found.append(remembered.encode_many(["old new"])))
    first.start()
    assert waits.wait(10)
    remembered.encode_many(["some other words here"])
    filled.set()
    first.join(10)
    assert found == [[cut("oldnew")]]
