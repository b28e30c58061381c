"""Words as vectors, templates, and words cut merge by merge."""

import itertools

import numpy as np
import pytest

from regard.core.errors import UsageError
from regard.data.tokenizers import Tokenizer, TokenizerSpec
from regard.inspection.packing import pack, unpack
from regard.inspection.probe import Template
from regard.inspection.words_in_space import likeness, nearest_fixed, plane


def test_likeness_is_the_cosine() -> None:
    vectors = np.array([[3.0, 0.0], [1.0, 1.0], [0.0, -2.0], [0.0, 0.0]], dtype=np.float32)
    found = likeness(vectors)
    np.testing.assert_allclose(found[0], [1.0, 0.5**0.5, 0.0, 0.0], atol=1e-6)
    assert nearest_fixed(vectors, 0, most=1) == [(1, pytest.approx(0.7071, abs=1e-4))]


def test_a_flat_map_keeps_distances_that_are_flat() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(7, 2)).astype(np.float32)
    turned = (flat @ np.linalg.qr(rng.normal(size=(5, 5)))[0][:2]).astype(np.float32)
    shown = plane(turned)

    def distances(points: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.linalg.norm(points[:, None] - points[None], axis=-1)
        return found / found.max()

    np.testing.assert_allclose(distances(shown), distances(flat), atol=1e-5)
    assert plane(np.zeros((3, 4), dtype=np.float32)).tolist() == [[0.0, 0.0]] * 3


def test_a_template_is_filled_in_every_way() -> None:
    template = Template("The {doctor, nurse} said {he,she}")
    assert [text for _, text in template.filled()] == [
        *("The doctor said he", "The doctor said she"),
        *("The nurse said he", "The nurse said she"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("  ", "no template"),
        ("no slot", "no slot"),
        ("{he}", "leaves no choice"),
        ("{a,b}" * 9, "512 ways"),
    ],
)
def test_templates_that_cannot_be_run(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Template(text)


def test_half_precision_is_right_to_a_2048th() -> None:
    values = (np.random.default_rng(1).normal(size=(2, 3, 4)) * 10).astype(np.float32)
    np.testing.assert_allclose(unpack(pack(values, "float16")), values, rtol=1 / 2048)
    assert pack(np.full((1, 1, 1), 1e6, dtype=np.float32), "float16")["encoding"] == "float32"


@pytest.mark.parametrize("unit", ["bpe", "byte_bpe", "character", "word", "wordpiece"])
def test_words_are_cut_as_they_are_encoded(unit: str) -> None:
    texts = ["low lower lowest newer newest wide"] * 4
    tokenizer = Tokenizer.train(TokenizerSpec(unit=unit, size=300 if unit == "byte_bpe" else 60), texts)
    text = "lowest newer"
    cuts = tokenizer.cuts(text)
    ends = [symbol for word in cuts for symbol in word[-1].symbols]
    assert len(ends) == len(tokenizer.encode(text))
    assert "".join(ends).replace("▁", "").replace("##", "") == text.replace(
        " ", "" if unit != "character" else " "
    )


def test_merges_are_taken_in_the_order_they_were_learned() -> None:
    tokenizer = Tokenizer.train(TokenizerSpec(unit="bpe", size=40), ["abab abab ab"] * 3)
    (steps,) = tokenizer.cuts("abab")
    assert steps[0].symbols == ("▁", "a", "b", "a", "b")
    ranks = [step.rank for step in steps[1:]]
    assert ranks[0] == 0
    assert steps[1].pair == tokenizer.merges()[0]
    assert all(len(after.symbols) < len(before.symbols) for before, after in itertools.pairwise(steps))
