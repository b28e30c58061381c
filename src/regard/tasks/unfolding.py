"""Answers heard while they are written: tokens in, text out as soon as nothing can change it any more."""

from collections.abc import Callable, Sequence

from regard.search.constraints import Constraint
from regard.search.listening import Leaving, Listening, cut_at
from regard.tasks.task import Audience


class Unfolding:
    """One answer as it grows. Half a character, or what may become a stop, waits for the next token."""

    def __init__(self, text_of: Callable[[Sequence[int]], str], stops: Sequence[str] = ()) -> None:
        self.text_of, self.stops = text_of, stops
        self._tokens, self._said = list[int](), ""

    def grow(self, token: int) -> str:
        """What has become certain."""
        self._tokens.append(token)
        whole = cut_at(self.text_of(self._tokens), self.stops)
        waits = max((_overlap(whole, stop) for stop in self.stops), default=0)
        return self._more(whole[: len(whole) - waits].rstrip("\ufffd"))

    def rest(self) -> str:
        """What had to wait, now that nothing follows."""
        return self._more(cut_at(self.text_of(self._tokens), self.stops))

    def _more(self, ready: str) -> str:
        if not ready.startswith(self._said):
            return ""
        more, self._said = ready[len(self._said) :], ready
        return more


class Hall:
    """The audience of one batch, whose sentences stand at ``places`` of what was asked."""

    def __init__(self, audience: Audience, places: Sequence[int], unfold: Callable[[int], Unfolding]) -> None:
        self.audience, self.places = audience, places
        self.growing = [unfold(place) for place in places]

    def constraints(self, end: int, steady: bool) -> list[Constraint]:
        """What a search must be handed: it gives up what nobody waits for and, where what was chosen stays,
        tells what it writes."""
        leaving = Leaving(lambda sentence: self.audience.left(self.places[sentence]), end)
        return (
            [leaving, Listening(lambda sentence, token: self._hear(sentence, token, end))]
            if steady
            else [leaving]
        )

    def _hear(self, sentence: int, token: int, end: int) -> None:
        growing = self.growing[sentence]
        piece = growing.rest() if token == end else growing.grow(token)
        if piece:
            self.audience.hear(self.places[sentence], piece)


def _overlap(text: str, stop: str) -> int:
    """How much of the end of ``text`` may be the beginning of ``stop``."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
