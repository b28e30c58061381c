"""How well spans were found: exactly, by any overlap, by the share of it.

    exact           a span counts if type and both ends are right (conlleval)
    binary          it counts if it overlaps one of its type on the other side
    proportional    it counts as much of it as spans of its type on the other side cover

The two soft measures are those of opinion mining (Breck et al. 2007; Johansson and Moschitti 2010; Irsoy and
Cardie 2014 §4), where annotators agree on expressions but seldom on where they end. Precision is the mean
over spans that were found, recall that over spans that were wanted. All but accuracy are from 0 to 100.
"""

from collections.abc import Callable, Sequence

from regard.data.tag_schemes import Span, mark_spans, spans_of


def tag_scores(found: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> dict[str, float]:
    """F1 where tags mark spans, the most important first; the share of words tagged right."""
    words = sum(map(len, wanted))
    right = sum(
        a == b for ours, theirs in zip(found, wanted, strict=True) for a, b in zip(ours, theirs, strict=True)
    )
    accuracy = {"accuracy": right / max(words, 1)}
    if not all(mark_spans(tags) for side in (found, wanted) for tags in side):
        # Every word is then a span of its own.
        return accuracy | {"f1": 100 * accuracy["accuracy"]}
    ours, theirs = ([spans_of(tags) for tags in side] for side in (found, wanted))
    exact = _means(ours, theirs, _is_there), _means(theirs, ours, _is_there)
    soft = {
        f"{name}_f1": _f1(_means(ours, theirs, share), _means(theirs, ours, share))
        for name, share in (("binary", _touched), ("proportional", _covered))
    }
    return {"f1": _f1(*exact), "precision": exact[0], "recall": exact[1]} | soft | accuracy


def _means(
    of: Sequence[Sequence[Span]],
    among: Sequence[Sequence[Span]],
    share: Callable[[Span, Sequence[Span]], float],
) -> float:
    """The mean share of a span ``of`` one side that is right ``among`` the other, in per cent."""
    shares = [share(span, others) for spans, others in zip(of, among, strict=True) for span in spans]
    return 100 * sum(shares) / max(len(shares), 1)


def _is_there(span: Span, others: Sequence[Span]) -> float:
    return float(span in others)


def _touched(span: Span, others: Sequence[Span]) -> float:
    return float(any(_overlap(span, other) for other in others))


def _covered(span: Span, others: Sequence[Span]) -> float:
    return sum(_overlap(span, other) for other in others) / (span.end - span.begin)


def _overlap(one: Span, other: Span) -> int:
    """Words that both hold; none where their types differ."""
    return max(0, min(one.end, other.end) - max(one.begin, other.begin)) if one.type == other.type else 0


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0
