"""Answers as people and programs read them."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from regard.core.spec import Plain
from regard.search.kept import KeptSentence

END = "⟨end⟩"
"""Stands for the end token where pieces are shown."""
Detail: TypeAlias = Literal["text", "scores", "tokens"]
"""How much is told of an answer: what it says; its pieces, too, and how probable it is; and how probable each
of them is. Who wants to know less may be answered sooner."""


@dataclass(frozen=True)
class Candidate:
    """One way to answer."""

    text: str
    pieces: list[str]
    """As the model wrote it, with ``⟨end⟩`` when it ended by itself; none where only a text is asked for."""
    token_log_probs: list[float]
    """Natural logarithm of the probability of each piece; none where nobody asked for such detail."""
    log_prob: float
    """Their sum: log p(answer | input); perhaps not a number where only the text was asked for."""
    score: float
    """What the search ranked by: log_prob / length^alpha; as known as that."""
    finished: bool
    """False when the greatest length cut it off, or a required word could not be placed."""
    facts: dict[str, Plain] = field(default_factory=dict)
    """What else a program may want to know of it, by name."""
    tokens: list[int] = field(default_factory=list)
    """Ids of what was written, in the model's order, without an end; none where it is read off at once."""

    def to_dict(self) -> dict[str, Plain]:
        return {
            "text": self.text,
            "score": self.score,
            "log_prob": self.log_prob,
            "finished": self.finished,
            "pieces": list[Plain](self.pieces),
            "token_log_probs": list[Plain](self.token_log_probs),
            **self.facts,
        }


@dataclass(frozen=True)
class Answer:
    """All that was found for one line of input, best first."""

    source: str
    source_pieces: list[str] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    search: KeptSentence | None = None
    """The whole search, when it was kept."""
    engine: str = "torch"
    """Who found it."""

    @property
    def text(self) -> str:
        """The best answer; an empty input has an empty one."""
        return self.candidates[0].text if self.candidates else ""

    def to_dict(self) -> dict[str, Plain]:
        """The best answer in full, and all of them where there are several."""
        found: dict[str, Plain] = {"source": self.source, "text": self.text, "engine": self.engine}
        if self.candidates:
            best, *others = self.candidates
            found |= best.to_dict() | {"source_pieces": list[Plain](self.source_pieces)}
            found["n_best"] = [candidate.to_dict() for candidate in self.candidates] if others else []
        if self.search is not None:
            found["search"] = self.search.to_dict()
        return found


@dataclass(frozen=True)
class Scored:
    """How probable a given output is."""

    source: str
    target: str
    pieces: list[str]
    token_log_probs: list[float]

    @property
    def log_prob(self) -> float:
        return sum(self.token_log_probs)

    def to_dict(self) -> dict[str, Plain]:
        return {
            "source": self.source,
            "target": self.target,
            "log_prob": self.log_prob,
            "pieces": list[Plain](self.pieces),
            "token_log_probs": list[Plain](self.token_log_probs),
        }
