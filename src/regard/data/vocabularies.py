"""The vocabularies of a corpus of pairs."""

from collections.abc import Iterable

from regard.data.origins import Pair, Texts
from regard.data.pair_spec import PairsPlan
from regard.data.tokenizers import Tokenizer


def learn_vocabularies(spec: PairsPlan, rows: Iterable[Pair]) -> tuple[Tokenizer, Tokenizer]:
    """One for each side, or one for both; goes through ``rows`` several times."""
    if spec.joint:
        both = Tokenizer.train(spec.source, Texts(rows, (0, 1)))
        return both, both
    return Tokenizer.train(spec.source, Texts(rows, (0,))), Tokenizer.train(spec.target, Texts(rows, (1,)))
