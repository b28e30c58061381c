"""What BERT and its kin call the same things: fields of their configs, names of their weights.

BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019), ALBERT (Lan et al. 2020), ELECTRA (Clark et al. 2020),
DistilBERT (Sanh et al. 2019) and RoFormer (Su et al. 2021) are one wiring; MiniLM (Wang et al. 2020) and most
sentence encoders are BERTs.
"""

from typing import Any, NamedTuple

from regard.interop.saying import ACTIVATIONS, Said

BLOCK = "encoder.stack.blocks.0"
_NORMS = ("encoder.embedding.norm.epsilon", f"{BLOCK}.join.norm.epsilon", "head.rephrasing.norm.epsilon")


class Layer(NamedTuple):
    """Names inside a layer."""

    query: str
    key: str
    value: str
    out: str
    attention_norm: str
    widen: str
    narrow: str
    norm: str


class Guessing(NamedTuple):
    """Names in the head that guesses words."""

    dense: str
    norm: str
    bias: str
    words: str
    """Where it has a matrix of its own."""
    twice: tuple[str, ...] = ()
    """Other names under which older folders store the same bias."""


class Dialect(NamedTuple):
    title: str
    kind: str
    """As ``model_type`` says."""
    prefix: str
    said: tuple[Said, ...]
    layers: str
    """The name of a layer, with its number left open."""
    layer: Layer
    guessing: Guessing
    architectures: dict[str, str]
    """The class of each wiring: masked, compared (masked, and telling whether passages belong together),
    reader, detector (telling which tokens were replaced)."""
    pooler: str | None = None
    relation: str | None = None
    """What tells whether passages belong together."""
    detection: tuple[str, str] | None = None
    """The two layers that tell which tokens were replaced."""
    lead: str | None = None
    """From a narrow table of words to the layers."""
    always_leads: bool = False
    """Even where both are of one width."""
    shared: bool = False
    typed: bool = True
    """Tokens have types, those of a pair's second text another one."""
    skips: bool = False
    """Positions begin after that of padding."""
    turned: bool = False
    """Positions are turned into queries and keys; otherwise learned, and added to the input."""
    rephrases: str | None = None
    """The activation before words, where no config says it."""
    doubled: bool = False
    """Two marks between the texts of a pair."""
    cuts: str | None = None
    """The class of tokenizers that a folder means where it names none, if regard cannot cut as that does."""


def _sizes(**usual: Any) -> tuple[Said, ...]:
    """The rows that all but DistilBERT share, with what each means when it is silent."""
    activations: tuple[str, ...] = (f"{BLOCK}.mixers.1.activation",)
    if usual.get("rephrases", True):
        activations += ("head.rephrasing.activation",)
    return (
        Said("hidden_size", usual["width"], ("encoder.embedding.width",)),
        Said("num_hidden_layers", 12, (f"{BLOCK}.repeat",)),
        Said("num_attention_heads", usual["heads"], (f"{BLOCK}.mixers.0.heads",)),
        Said("intermediate_size", usual["hidden"], (f"{BLOCK}.mixers.1.hidden",)),
        Said("hidden_act", usual.get("activation", "gelu"), activations, ACTIVATIONS),
        Said(
            "hidden_dropout_prob",
            usual.get("dropout", 0.1),
            ("encoder.embedding.dropout", f"{BLOCK}.join.dropout"),
        ),
        Said("attention_probs_dropout_prob", usual.get("dropout", 0.1), (f"{BLOCK}.mixers.0.dropout",)),
        Said("layer_norm_eps", 1e-12, _NORMS),
        Said("tie_word_embeddings", True, ("tied",)),
    )


NARROW = "embedding_size"
"""Width of the table of words; None: that of the layers."""
_NARROW = Said(NARROW, 128, ("encoder.embedding.table",))
_BERT_LAYER = Layer(
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "attention.output.LayerNorm"),
    *("intermediate.dense", "output.dense", "output.LayerNorm"),
)
_BERT_GUESSING = Guessing(
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.bias",
    "cls.predictions.decoder.weight",
    ("cls.predictions.decoder.bias",),
)

BERT = Dialect(
    "BERT",
    "bert",
    "bert.",
    _sizes(width=768, heads=12, hidden=3072),
    "bert.encoder.layer.{}",
    _BERT_LAYER,
    _BERT_GUESSING,
    {"masked": "BertForMaskedLM", "compared": "BertForPreTraining", "reader": "BertModel"},
    pooler="bert.pooler.dense",
    relation="cls.seq_relationship",
)
ROBERTA = Dialect(
    "RoBERTa",
    "roberta",
    "roberta.",
    _sizes(width=768, heads=12, hidden=3072, rephrases=False),
    "roberta.encoder.layer.{}",
    _BERT_LAYER,
    Guessing(
        "lm_head.dense",
        "lm_head.layer_norm",
        "lm_head.bias",
        "lm_head.decoder.weight",
        ("lm_head.decoder.bias",),
    ),
    {"masked": "RobertaForMaskedLM", "reader": "RobertaModel"},
    pooler="roberta.pooler.dense",
    skips=True,
    rephrases="gelu",
    doubled=True,
)
ALBERT = Dialect(
    "ALBERT",
    "albert",
    "albert.",
    (*_sizes(width=4096, heads=64, hidden=16384, activation="gelu_new", dropout=0.0), _NARROW),
    "albert.encoder.albert_layer_groups.0.albert_layers.0",
    Layer(
        *("attention.query", "attention.key", "attention.value"),
        *("attention.dense", "attention.LayerNorm"),
        *("ffn", "ffn_output", "full_layer_layer_norm"),
    ),
    Guessing(
        "predictions.dense",
        "predictions.LayerNorm",
        "predictions.bias",
        "predictions.decoder.weight",
        ("predictions.decoder.bias",),
    ),
    {"masked": "AlbertForMaskedLM", "compared": "AlbertForPreTraining", "reader": "AlbertModel"},
    pooler="albert.pooler",
    relation="sop_classifier.classifier",
    lead="albert.encoder.embedding_hidden_mapping_in",
    always_leads=True,
    shared=True,
)
ELECTRA = Dialect(
    "ELECTRA",
    "electra",
    "electra.",
    (*_sizes(width=256, heads=4, hidden=1024, rephrases=False), _NARROW),
    "electra.encoder.layer.{}",
    _BERT_LAYER,
    Guessing(
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head.bias",
        "generator_lm_head.weight",
    ),
    {"masked": "ElectraForMaskedLM", "reader": "ElectraModel", "detector": "ElectraForPreTraining"},
    detection=("discriminator_predictions.dense", "discriminator_predictions.dense_prediction"),
    lead="electra.embeddings_project",
    rephrases="gelu",
)
DISTILBERT = Dialect(
    "DistilBERT",
    "distilbert",
    "distilbert.",
    (
        Said("dim", 768, ("encoder.embedding.width",)),
        Said("n_layers", 6, (f"{BLOCK}.repeat",)),
        Said("n_heads", 12, (f"{BLOCK}.mixers.0.heads",)),
        Said("hidden_dim", 3072, (f"{BLOCK}.mixers.1.hidden",)),
        Said(
            "activation", "gelu", (f"{BLOCK}.mixers.1.activation", "head.rephrasing.activation"), ACTIVATIONS
        ),
        Said("dropout", 0.1, ("encoder.embedding.dropout", f"{BLOCK}.join.dropout")),
        Said("attention_dropout", 0.1, (f"{BLOCK}.mixers.0.dropout",)),
        Said("tie_word_embeddings", True, ("tied",)),
    ),
    "distilbert.transformer.layer.{}",
    Layer(
        *("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        *("attention.out_lin", "sa_layer_norm"),
        *("ffn.lin1", "ffn.lin2", "output_layer_norm"),
    ),
    Guessing("vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "vocab_projector.weight"),
    {"masked": "DistilBertForMaskedLM", "reader": "DistilBertModel"},
    typed=False,
)
ROFORMER = Dialect(
    "RoFormer",
    "roformer",
    "roformer.",
    (*_sizes(width=768, heads=12, hidden=3072), _NARROW._replace(usual=None)),
    "roformer.encoder.layer.{}",
    _BERT_LAYER,
    _BERT_GUESSING,
    {"masked": "RoFormerForMaskedLM", "reader": "RoFormerModel"},
    lead="roformer.embeddings_project",
    turned=True,
    cuts="RoFormerTokenizer",
)
