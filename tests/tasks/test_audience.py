"""Answers that are heard while they are written, and given up when nobody waits."""

from collections import defaultdict
from collections.abc import Callable

import pytest

from regard.apps.session import Run, load
from regard.apps.training import train
from regard.search.greedy import GreedySpec
from regard.search.sampling import SamplingSpec
from regard.search.search import SearchSpec
from regard.tasks.task import Asked, Wishes
from tests.apps.toys import examples, toy


class Room:
    listens = True

    def __init__(self, leaves: Callable[[int, str], bool] = lambda place, said: False) -> None:
        self.said: dict[int, str] = defaultdict(str)
        self.pieces, self.leaves = 0, leaves

    def hear(self, place: int, piece: str) -> None:
        self.said[place] += piece
        self.pieces += 1

    def left(self, place: int) -> bool:
        return self.leaves(place, self.said[place])


@pytest.fixture(scope="module", params=["transformer", "gpt_tiny"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("audience") / request.param
    data = examples(request.param, 40)
    train(toy(request.param), data, folder, valid=examples(request.param, 8, 1), steps=30)
    return load(folder)


TEXTS = ["abc", "de", "fab", "abc defdef"]


@pytest.mark.parametrize("search", [GreedySpec(longest_extra=12), SamplingSpec(longest_extra=12, seed=4)])
def test_what_is_heard_is_the_answer_row_by_row(run: Run, search: SearchSpec) -> None:
    room, task = Room(), run.task(search)
    alone = task.answer(Asked(TEXTS, Wishes(stop=("ef",))))
    heard = task.answer(Asked(TEXTS, Wishes(stop=("ef",)), audience=room))
    assert [answer.text for answer in heard] == [answer.text for answer in alone]
    for place, answer in enumerate(heard):
        assert answer.text.startswith(room.said[place])
        assert answer.text == room.said[place] or not answer.candidates[0].finished
    assert room.pieces > len(TEXTS)


@pytest.mark.parametrize("kind", ["greedy", "beam", "sampling"])
def test_who_leaves_ends_his_own_answer_only(run: Run, kind: str) -> None:
    search = SearchSpec.from_dict({"kind": kind, "longest_extra": 12, "shortest": 3, "longest_ratio": 0.0})
    task = run.task(search)
    whole = task.answer(Asked(TEXTS))
    rest = task.answer(Asked(TEXTS, audience=Room(lambda place, said: place == 1)))
    for place in (0, 2, 3):
        assert rest[place].text == whole[place].text
    assert len(rest[1].candidates[0].pieces) < len(whole[1].candidates[0].pieces)


def test_samples_are_drawn_by_the_numbers_given(run: Run) -> None:
    task = run.task(SamplingSpec(longest_extra=12, seed=4))
    first, second, third, _ = task.answer(Asked(TEXTS))
    again = task.answer(Asked([TEXTS[2], TEXTS[0], TEXTS[1]], numbers=[2, 0, 1]))
    assert [answer.text for answer in again] == [third.text, first.text, second.text]
    same = task.answer(Asked([TEXTS[0]] * 4, numbers=[0, 0, 7, 8]))
    assert same[0].text == same[1].text == first.text
    assert len({answer.text for answer in same}) > 1


def test_half_a_stop_waits_until_it_is_none() -> None:
    from regard.tasks.unfolding import Unfolding

    letters = "xENyEND!"
    growing = Unfolding(lambda ids: "".join(letters[i] for i in ids), ["END"])
    heard = [growing.grow(number) for number in range(len(letters))]
    assert heard == ["x", "", "", "ENy", "", "", "", ""]
    assert growing.rest() == ""
    growing = Unfolding(lambda ids: "".join(letters[i] for i in ids), ["END"])
    assert [growing.grow(number) for number in range(3)] + [growing.rest()] == ["x", "", "", "EN"]
