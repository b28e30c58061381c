"""How good quoted answers are, as SQuAD's official script counts (Rajpurkar et al. 2016 §6.1, 2018).

Both sides are made small, and lose punctuation, articles and superfluous blanks. Exact match and F1 over
words are the best over all right answers, means over questions, from 0 to 100. Nothing is right where
nothing is.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = set(string.punctuation)


def normal(text: str) -> str:
    bare = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact(answer: str, right: str) -> float:
    return float(normal(answer) == normal(right))


def f1(answer: str, right: str) -> float:
    """Of the words of both as bags."""
    ours, theirs = normal(answer).split(), normal(right).split()
    if not ours or not theirs:
        return float(ours == theirs)
    both = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * both / (len(ours) + len(theirs))


def quote_scores(answers: Sequence[str], right: Sequence[Sequence[str]]) -> dict[str, float]:
    """The most important first; apart for questions with and without an answer where there are both."""
    scores = {"f1": _mean(f1, answers, right), "exact_match": _mean(exact, answers, right)}
    nothing = [number for number, rights in enumerate(right) if not any(map(normal, rights))]
    if not nothing:
        return scores
    absent = set(nothing)
    something = [number for number in range(len(right)) if number not in absent]
    for name, numbers in (("answered", something), ("unanswerable", nothing)):
        if numbers:
            some = [answers[number] for number in numbers], [right[number] for number in numbers]
            scores[f"f1_{name}"] = _mean(f1, *some)
    return scores


def _mean(
    score: Callable[[str, str], float], answers: Sequence[str], right: Sequence[Sequence[str]]
) -> float:
    best = [
        max(score(answer, one) for one in [text for text in rights if normal(text)] or [""])
        for answer, rights in zip(answers, right, strict=True)
    ]
    return 100 * sum(best) / max(len(best), 1)
