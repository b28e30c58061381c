"""What heads do and what flows where, against values by hand."""

import numpy as np
import pytest

from regard.inspection.alignment import rollout, source_rollout, word_alignment, words_of
from regard.inspection.head_deeds import deeds
from regard.inspection.trace import Attention, Trace


def itself(
    weights: list[list[float]], columns: tuple[str, ...], rows: tuple[str, ...] | None = None
) -> Attention:
    array = np.array([weights], dtype=np.float32)
    part = "encoder" if rows is None else "decoder"
    return Attention("a", part, 0, 0, "itself", rows or columns, columns, array)


def memory(
    weights: list[list[float]], rows: tuple[str, ...], columns: tuple[str, ...], layer: int = 0
) -> Attention:
    return Attention("m", "decoder", layer, 1, "memory", rows, columns, np.array([weights], dtype=np.float32))


def test_previous_next_same_separator_diagonal_and_entropy() -> None:
    weights = [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.25, 0.75]]
    (found,) = deeds(itself(weights, ("▁a", "A", "⟨end⟩")))
    assert found.previous == pytest.approx((1.0 + 0.25) / 2)
    assert found.next == pytest.approx((0.5 + 0.0) / 2)
    assert found.same == pytest.approx((1.0 + 1.0 + 0.75) / 3, abs=1e-4)
    assert found.separator == pytest.approx(0.75 / 3)
    assert found.diagonal == pytest.approx(1.0)
    bits = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    assert found.entropy == pytest.approx((1.0 + 0.0 + bits) / 3, abs=1e-4)


def test_a_row_of_a_decoder_looks_as_the_token_it_has_read() -> None:
    """Row 1 predicts y and has read x, which is column 1: to look there is to look at itself."""
    (found,) = deeds(itself([[1.0, 0.0], [0.0, 1.0]], ("⟨begin⟩", "x"), rows=("x", "y")))
    assert (found.same, found.previous) == (1.0, 0.0)


def test_the_diagonal_of_a_memory_goes_from_corner_to_corner() -> None:
    weights = [[1.0, 0, 0, 0, 0], [0, 0, 0, 0, 1.0]]
    (found,) = deeds(memory(weights, ("x", "y"), ("a", "b", "c", "d", "e")))
    assert found.diagonal == 1.0
    assert found.previous == found.next == 0.0


def test_words_are_aligned_by_what_their_pieces_see() -> None:
    read, wrote = ("▁the", "▁ri", "ver", "⟨end⟩"), ("▁der", "▁Fl", "uss", "⟨end⟩")
    matrix = np.array([[0.6, 0.2, 0.1, 0.1], [0.35, 0.3, 0.3, 0.05], [0.4, 0.3, 0.3, 0.0], [0, 0, 0, 1]])
    found = word_alignment(matrix.astype(np.float32), wrote, read)
    assert (found.source, found.target) == (["the", "river"], ["der", "Fluss"])
    assert found.pairs == [(0, 0), (1, 1)]
    assert words_of(["3", "▁", "m", "a", "i", "⟨end⟩"]) == [[0], [2, 3, 4]]
    assert words_of(["[CLS]", "play", "##ing", "it", "[SEP]"]) == [[1, 2], [3]]


def test_rollout_of_two_layers_by_hand() -> None:
    """Abnar and Zuidema (2020) eq. 1: Ã₂ Ã₁ with Ã = ½W + ½I."""
    first = itself([[0.0, 1.0], [0.0, 1.0]], ("a", "b"))
    second = itself([[0.5, 0.5], [1.0, 0.0]], ("a", "b"))
    trace = Trace(("a", "b"), (), False, (), (first, second))
    expected = np.array([[0.75, 0.25], [0.5, 0.5]]) @ np.array([[0.5, 0.5], [0.0, 1.0]])
    found = rollout(trace)
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_rollout_from_the_source_by_hand() -> None:
    """One layer that looks at itself, then at the source: half of a row stays its own each time."""
    read, wrote = ("a", "b"), ("x", "y")
    own = itself([[1.0, 0.0], [0.5, 0.5]], ("⟨begin⟩", "x"), rows=wrote)
    looked = memory([[1.0, 0.0], [0.0, 1.0]], wrote, read)
    later = memory([[0.0, 1.0], [0.0, 1.0]], wrote, read, layer=1)
    found = source_rollout(Trace(read, wrote, False, (0.0, 0.0), (own, looked, later)))
    assert found is not None
    np.testing.assert_allclose(found, [[1 / 3, 2 / 3], [0.0, 1.0]], atol=1e-6)
    alone = source_rollout(Trace(read, wrote, False, (0.0, 0.0), (looked,)))
    np.testing.assert_allclose(alone, looked.weights[0], atol=1e-6)
    assert source_rollout(Trace((), wrote, False, (0.0, 0.0), (own,))) is None
