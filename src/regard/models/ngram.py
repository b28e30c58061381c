"""The n-gram language model: p(y_t | y_<t) ≈ p(y_t | the last n−1 tokens), from counts.

It keeps the contract of a decoder, so it generates, scores and is searched as the neural ones are. What a
position is represented by is its context: the tokens before it, with ``NOTHING`` where none has been read.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Num
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.models.model import ModelSpec
from regard.parts import arpa
from regard.parts.cross_entropy import Advice
from regard.parts.ngram_counts import count_ngrams
from regard.parts.smoothing import KneserNeySpec, Level, SmoothingSpec

PADDING, UNKNOWN, BEGIN, END = range(4)
"""The same ids in every vocabulary that is learned here (data/units)."""
NOTHING = -1


class NgramSpec(ModelSpec):
    marks: ClassVar[tuple[int, int, int, int] | None] = (PADDING, UNKNOWN, BEGIN, END)

    order: int = Field(default=5, ge=1)
    """Tokens of the longest n-gram: each is predicted from the order − 1 before it."""
    smoothing: SmoothingSpec = KneserNeySpec()

    def build(self, sizes: Mapping[str, int]) -> "Ngram":
        if len(sizes) != 1:
            raise UsageError(f"an n-gram model has one vocabulary, not {len(sizes)} ({', '.join(sizes)})")
        return Ngram(self, *sizes.values())


class Ngram(nn.Module):
    """Has no parameters; its tables are buffers, empty until ``learn`` has counted or weights are loaded."""

    words: Tensor
    producible: Tensor

    def __init__(self, spec: NgramSpec, vocabulary: int) -> None:
        super().__init__()
        self.order, self.vocabulary = spec.order, vocabulary
        self.smoothing = spec.smoothing.build()
        producible = torch.ones(vocabulary, dtype=torch.bool)
        producible[[PADDING, BEGIN]] = False
        self.register_buffer("producible", producible, persistent=False)
        self.register_buffer("words", torch.zeros(vocabulary))
        self.following = nn.ModuleList(Following(vocabulary) for _ in range(spec.order - 1))

    @property
    def longest(self) -> int | None:
        """As long a text as one likes."""
        return None

    def learn(self, values: np.ndarray, offsets: np.ndarray) -> None:
        """Count; document i is ``values[offsets[i]:offsets[i + 1]]`` and ends with its end token."""
        counts = count_ngrams(values, offsets, self.order, self.vocabulary, BEGIN, PADDING)
        smoothed = self.smoothing(counts)
        self.words = torch.from_numpy(smoothed.words).to(self.words)
        for following, grams, level in zip(self.following, counts.orders[1:], smoothed.levels, strict=True):
            cast(Following, following).fill(grams.keys, level, like=self.words)

    def start(self, batch: int) -> Int[Tensor, "batch context"]:
        return torch.full((batch, self.order - 1), NOTHING, dtype=torch.long, device=self.words.device)

    def read(
        self, tokens: Tokens, state: Int[Tensor, "batch context"]
    ) -> tuple[Int[Tensor, "batch time context"], Int[Tensor, "batch context"]]:
        """The context that each token leaves for the next one. After an end another document begins."""
        ids = torch.where(tokens.ids == END, BEGIN, tokens.ids)
        line = torch.cat((state, ids), dim=1)
        window = torch.arange(self.order - 1, device=line.device)
        time = torch.arange(1, ids.shape[1] + 1, device=line.device)
        # Padding stands on the right: after r real tokens the window begins at place r of the line.
        read = tokens.real.sum(1, keepdim=True)
        return line[:, time[:, None] + window], line.gather(1, read + window)

    def predict(self, x: Int[Tensor, "*rows context"]) -> Float[Tensor, "*rows vocabulary"]:
        """Log-probabilities of the token that follows: they are their own logits."""
        contexts = x.reshape(x.shape[:-1].numel(), self.order - 1)
        probabilities = self._words_alone.expand(len(contexts), -1)
        for following, places in self._suffixes(contexts):
            probabilities = following.all_words(places, probabilities, self.producible)
        return probabilities.log().reshape(*x.shape[:-1], self.vocabulary)

    def log_probs_of(
        self, contexts: Int[Tensor, "rows context"], wanted: Int[Tensor, "rows"]
    ) -> Float[Tensor, "rows"]:
        """Only of the tokens that were wanted: no row of the vocabulary's width is ever made."""
        probabilities = self._words_alone[wanted]
        for following, places in self._suffixes(contexts):
            probabilities = following.one_word(places, wanted, probabilities, self.producible[wanted])
        return probabilities.log()

    def cost(
        self,
        x: Int[Tensor, "rows context"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]:
        """Summed −log p of the tokens that were wanted next."""
        if advice is not None:
            raise UsageError("an n-gram model is counted: nobody can teach it")
        if smoothing:
            raise UsageError(
                f"smoothing of targets is {smoothing}: an n-gram model smooths its counts, give 0"
            )
        return -self.log_probs_of(x, wanted).sum()

    def step(
        self, tokens: Int[Tensor, "rows"], state: Int[Tensor, "rows context"]
    ) -> tuple[Float[Tensor, "rows vocabulary"], Int[Tensor, "rows context"]]:
        """Log-probabilities after one more token: all that a search knows of a model."""
        x, state = self.read(Tokens.whole(tokens[:, None]), state)
        return self.predict(x[:, -1]), state

    def arpa_lines(self, names: Sequence[str]) -> Iterator[str]:
        """The model as other n-gram toolkits read it, line by line; ``names`` of all tokens by id."""
        tables = [cast(Following, table) for table in self.following]
        if any(bool(table.floors.any()) for table in tables):
            raise UsageError("an ARPA file cannot say add-k smoothing: it knows no share of every word")
        if len(names) != self.vocabulary:
            raise UsageError(f"{len(names)} names for a vocabulary of {self.vocabulary}")
        names = ["<pad>", "<unk>", "<s>", "</s>", *names[END + 1 :]]
        written = [arpa.Table(*(_array(t) for t in (one.keys, one.parts, one.weights))) for one in tables]
        return arpa.arpa_lines(names, _array(self._words_alone), written, PADDING)

    @property
    def _words_alone(self) -> Float[Tensor, "vocabulary"]:
        if not bool(self.words.any()):
            raise UsageError("this n-gram model has counted nothing yet: let it learn, or load its weights")
        return self.words

    def _suffixes(
        self, contexts: Int[Tensor, "rows context"]
    ) -> Iterator[tuple["Following", Int[Tensor, "rows"]]]:
        """What follows the last token, the last two, …: a table and each row's place in the table below."""
        tables = [cast(Following, table) for table in self.following]
        for length, table in enumerate(tables, start=1):
            oldest, *newer = contexts[:, -length:].unbind(1)
            place = oldest
            for shorter, token in zip(tables, newer, strict=False):
                place = shorter.find(place, token)
            yield table, place


class Following(nn.Module):
    """What follows contexts of one length: p(w | h) = part(h, w) + weight(h) · p(w | h′) + floor(h).

    How many n-grams there are only the data know: until then the tables are empty.
    """

    keys: Tensor
    """Sorted, ``context × vocabulary + word``, where context is a place in the table of the order below."""
    parts: Tensor
    weights: Tensor
    floors: Tensor

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.register_buffer("keys", torch.zeros(0, dtype=torch.long))
        for name in Level._fields:
            self.register_buffer(name, torch.zeros(0))
        self.register_load_state_dict_pre_hook(_take_stored_sizes)  # type: ignore[no-untyped-call]

    def fill(self, keys: np.ndarray, level: Level, like: Tensor) -> None:
        self.keys = torch.from_numpy(keys).to(like.device)
        self.parts, self.weights, self.floors = (torch.from_numpy(values).to(like) for values in level)

    def find(self, contexts: Int[Tensor, "rows"], words: Int[Tensor, "rows"]) -> Int[Tensor, "rows"]:
        """Where context and word stand together; ``NOTHING`` where they were not seen."""
        wanted = contexts * self.vocabulary + words
        place = torch.searchsorted(self.keys, wanted)
        # A context that is nothing makes a negative key, and none of the table's is.
        inside = place < len(self.keys)
        there = inside & (_taken(self.keys, place, inside, NOTHING) == wanted)
        return torch.where(there, place, NOTHING)

    def one_word(
        self,
        contexts: Int[Tensor, "rows"],
        words: Int[Tensor, "rows"],
        shorter: Float[Tensor, "rows"],
        producible: Bool[Tensor, "rows"],
    ) -> Float[Tensor, "rows"]:
        """p(w | h) of one word per row, given p(w | h′)."""
        place = self.find(contexts, words)
        part = _taken(self.parts, place, place != NOTHING, 0.0)
        weight, floor = self._weight_and_floor(contexts)
        return part + weight * shorter + floor * producible

    def all_words(
        self,
        contexts: Int[Tensor, "rows"],
        shorter: Float[Tensor, "rows vocabulary"],
        producible: Bool[Tensor, "vocabulary"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """p(w | h) of every word, given p(w | h′). What follows one context stands side by side."""
        weight, floor = self._weight_and_floor(contexts)
        probabilities = weight[:, None] * shorter + floor[:, None] * producible
        # An unseen context is −1, and no key lies between −vocabulary and 0.
        begin = torch.searchsorted(self.keys, contexts * self.vocabulary)
        number = torch.searchsorted(self.keys, (contexts + 1) * self.vocabulary) - begin
        rows = torch.arange(len(contexts), device=number.device).repeat_interleave(number)
        before = (number.cumsum(0) - number)[rows]
        places = begin[rows] + torch.arange(len(rows), device=number.device) - before
        words = self.keys[places] - contexts[rows] * self.vocabulary
        # Row and word occur once together, so nothing is added twice to one entry.
        return probabilities.index_put((rows, words), self.parts[places], accumulate=True)

    def _weight_and_floor(
        self, contexts: Int[Tensor, "rows"]
    ) -> tuple[Float[Tensor, "rows"], Float[Tensor, "rows"]]:
        """An unseen context leaves everything to the shorter one."""
        seen = contexts != NOTHING
        return _taken(self.weights, contexts, seen, 1.0), _taken(self.floors, contexts, seen, 0.0)


def _taken(
    table: Num[Tensor, "entries"],
    places: Int[Tensor, "rows"],
    there: Bool[Tensor, "rows"],
    otherwise: int | float,
) -> Num[Tensor, "rows"]:
    """``table[places]`` where there is something, ``otherwise`` elsewhere; the table may be empty."""
    found = torch.full_like(places, otherwise, dtype=table.dtype)
    found[there] = table[places[there]]
    return found


def _array(tensor: Tensor) -> np.ndarray:
    exact = tensor.double() if tensor.is_floating_point() else tensor
    array: np.ndarray = exact.cpu().numpy()
    return array


def _take_stored_sizes(module: nn.Module, stored: Mapping[str, Tensor], prefix: str, *rest: Any) -> None:
    """``load_state_dict`` copies into tensors that are there: let them be as large as what comes."""
    for name, own in module.named_buffers(recurse=False):
        if prefix + name in stored:
            setattr(module, name, own.new_empty(stored[prefix + name].shape))
