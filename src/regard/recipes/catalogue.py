"""All recipes by name. Listing them imports nothing heavy; asking for one builds its spec."""

import importlib
from typing import TYPE_CHECKING, NamedTuple

from regard.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from regard.models.model import ModelSpec
    from regard.recipes.system import SystemSpec


class Entry(NamedTuple):
    where: str
    summary: str
    paper: str
    builds_on: bool = False
    """Can be made for a model to start from."""


RECIPES: dict[str, Entry] = {
    "seq2seq": Entry(
        "regard.recipes.recurrent:seq2seq",
        "LSTM encoder and decoder joined by the last state alone: the bottleneck, no attention",
        "Sutskever et al. 2014",
    ),
    "bahdanau": Entry(
        "regard.recipes.recurrent:bahdanau",
        "GRU decoder that looks at a bidirectional encoder before every step, additive score",
        "Bahdanau et al. 2015",
    ),
    "luong": Entry(
        "regard.recipes.recurrent:luong",
        "LSTM decoder that looks after every step, general score, input feeding",
        "Luong et al. 2015",
    ),
    "convs2s": Entry(
        "regard.recipes.convolutional:convs2s",
        "gated convolutions with attention in every decoder layer, learned positions",
        "Gehring et al. 2017",
    ),
    "transformer": Entry(
        "regard.recipes.transformer:transformer",
        "the Transformer in a size for a laptop: 3+3 layers, 256 wide",
        "Vaswani et al. 2017",
    ),
    "transformer_tiny": Entry(
        "regard.recipes.transformer:transformer_tiny",
        "4+4 layers, 128 wide, shared embeddings: best for tens of thousands of pairs",
        "Wu et al. 2021",
    ),
    "transformer_base": Entry(
        "regard.recipes.transformer:transformer_base",
        "the original size: 6+6 layers, 512 wide, 8 heads",
        "Vaswani et al. 2017",
    ),
    "ngram": Entry(
        "regard.recipes.counted_text:ngram",
        "counts of up to five words in a row, interpolated modified Kneser-Ney smoothing",
        "Chen and Goodman 1998",
    ),
    "char_lm": Entry(
        "regard.recipes.recurrent_text:char_lm",
        "an LSTM that reads and writes text character by character",
        "Karpathy 2015",
    ),
    "rnn_lm": Entry(
        "regard.recipes.recurrent_text:rnn_lm",
        "an LSTM language model over words, two layers of 200, dropout between them",
        "Zaremba et al. 2014",
    ),
    "awd_lstm": Entry(
        "regard.recipes.recurrent_text:awd_lstm",
        "an LSTM language model with dropped weights, locked dropout and averaged weights",
        "Merity et al. 2017",
    ),
    "gpt_tiny": Entry(
        "regard.recipes.gpt:gpt_tiny",
        "a Transformer that writes text character by character: 4 layers, 128 wide",
        "Radford et al. 2018",
    ),
    "gpt": Entry(
        "regard.recipes.gpt:gpt",
        "a Transformer language model in a size for a laptop: 6 layers, 256 wide, byte-level subwords",
        "Radford et al. 2019",
    ),
    "gpt_original": Entry(
        "regard.recipes.gpt:gpt_original",
        "the first one's size: 12 layers, 768 wide, post-norm, 512 positions",
        "Radford et al. 2018",
    ),
    "gpt2_small": Entry(
        "regard.recipes.gpt:gpt2_small",
        "the second one's smallest size: 12 layers, 768 wide, pre-norm, 1,024 positions",
        "Radford et al. 2019",
    ),
    "transformer_xl": Entry(
        "regard.recipes.transformer_xl:transformer_xl",
        "a Transformer language model that looks back beyond its window, by distance",
        "Dai et al. 2019",
    ),
    "word2vec": Entry(
        "regard.recipes.word_vectors:word2vec",
        "a vector for every word, from the words around it: skip-gram with negative sampling",
        "Mikolov et al. 2013b",
    ),
    "cbow": Entry(
        "regard.recipes.word_vectors:cbow",
        "a vector for every word: those around a word foresee it together",
        "Mikolov et al. 2013a",
    ),
    "context2vec": Entry(
        "regard.recipes.context2vec:context2vec",
        "a vector for what stands around a word: two opposite LSTMs that stop before it",
        "Melamud et al. 2016",
    ),
    "bert": Entry(
        "regard.recipes.bert:bert",
        "a reader that guesses hidden words from both sides and whether passages belong together",
        "Devlin et al. 2019",
    ),
    "bert_base": Entry(
        "regard.recipes.bert:bert_base",
        "the original size: 12 layers, 768 wide, 12 heads, learned positions",
        "Devlin et al. 2019",
    ),
    "roberta": Entry(
        "regard.recipes.bert:roberta",
        "a reader that only guesses hidden words, other ones every time",
        "Liu et al. 2019",
    ),
    "albert": Entry(
        "regard.recipes.bert:albert",
        "a reader whose layers are one and whose table of words is narrow, that knows the order of passages",
        "Lan et al. 2020",
    ),
    "electra": Entry(
        "regard.recipes.bert:electra",
        "a reader that tells which words a smaller one has put in place of others",
        "Clark et al. 2020",
    ),
    "elmo": Entry(
        "regard.recipes.elmo:elmo",
        "words from their letters, read from both ends by two LSTMs that never meet",
        "Peters et al. 2018",
    ),
    "ulmfit_lm": Entry(
        "regard.recipes.ulmfit:ulmfit_lm",
        "a language model tuned to the texts of a task, new words and all, lower layers more slowly (--from)",
        "Howard and Ruder 2018",
        builds_on=True,
    ),
    "ulmfit": Entry(
        "regard.recipes.ulmfit:ulmfit",
        "the class of a text, by a language model whose layers thaw one by one (--from)",
        "Howard and Ruder 2018",
        builds_on=True,
    ),
    "classifier": Entry(
        "regard.recipes.labelling:classifier",
        "the class of a text, by a bidirectional LSTM, or by any model given with --from",
        "Conneau et al. 2017",
        builds_on=True,
    ),
    "text_cnn": Entry(
        "regard.recipes.labelling:text_cnn",
        "the class of a text, by filters over three, four and five words side by side",
        "Kim 2014",
    ),
    "pair_classifier": Entry(
        "regard.recipes.labelling:pair_classifier",
        "the class of a pair of texts: entailment, paraphrase, the same question",
        "Conneau et al. 2017",
        builds_on=True,
    ),
    "tagger": Entry(
        "regard.recipes.tagging:tagger",
        "a tag for every word, read off any model given with --from",
        "Devlin et al. 2019",
        builds_on=True,
    ),
    "bilstm_tagger": Entry(
        "regard.recipes.tagging:bilstm_tagger",
        "a tag for every word: words and their letters, a bidirectional LSTM, a chain of tags",
        "Ma and Hovy 2016",
    ),
    "deep_tagger": Entry(
        "regard.recipes.tagging:deep_tagger",
        "a tag for every word: three bidirectional layers, each reading both directions below",
        "Irsoy and Cardie 2014",
    ),
    "multiple_choice": Entry(
        "regard.recipes.labelling:multiple_choice",
        "which of several choices is right, each read with what is given",
        "Radford et al. 2018",
        builds_on=True,
    ),
    "span_answerer": Entry(
        "regard.recipes.answering:span_answerer",
        "answers quoted from a text, or that it holds none",
        "Devlin et al. 2019",
        builds_on=True,
    ),
    "cove": Entry(
        "regard.recipes.cove:cove",
        "the class of a text, by what the encoder of a translator makes of it (--from)",
        "McCann et al. 2017",
        builds_on=True,
    ),
    "similarity": Entry(
        "regard.recipes.labelling:similarity",
        "how alike two texts are, as a number",
        "Cer et al. 2017",
        builds_on=True,
    ),
}


def recipe(name: str, start: "ModelSpec | None" = None) -> "SystemSpec":
    """The spec of a system; those that can build on another model are made for it."""
    entry = RECIPES.get(name)
    if entry is None:
        raise UsageError(f"there is no recipe {name!r}{nearest(name, RECIPES)}")
    module, function = entry.where.split(":")
    make = getattr(importlib.import_module(module), function)
    spec: SystemSpec = make(start) if entry.builds_on else make()
    return spec
