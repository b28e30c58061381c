"""Batches and the time axis, against definitions written out row by row."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.core import masks
from regard.core.sequences import Past, Timeline, Tokens

Row = list[list[bool]]  # the pieces of one row: which of their tokens are real


def test_pad_stacks_rows_of_different_lengths() -> None:
    tokens = Tokens.pad([[5, 6, 7], [], np.array([8, 9])], padding=3)
    assert tokens.ids.tolist() == [[5, 6, 7], [3, 3, 3], [8, 9, 3]]
    assert tokens.real.tolist() == [[True] * 3, [False] * 3, [True, True, False]]
    assert tokens.ids.dtype == torch.long


def test_pad_counts_padding_ids_inside_a_row_as_real() -> None:
    tokens = Tokens.pad([[3, 3], [4]], padding=3)
    assert tokens.real.tolist() == [[True, True], [True, False]]


def test_pad_of_nothing_is_empty() -> None:
    tokens = Tokens.pad([], padding=0)
    assert tokens.ids.shape == tokens.real.shape == (0, 0)
    assert Tokens.pad([[], []], padding=0).ids.shape == (2, 0)


def test_whole_has_no_padding() -> None:
    tokens = Tokens.whole(torch.zeros(2, 3, dtype=torch.long))
    assert tokens.real.all()
    assert tokens.real.shape == (2, 3)


def rows_of_pieces(most: int = 4) -> st.SearchStrategy[list[Row]]:
    """Rows read in the same pieces; within a piece, padding is on the right."""
    sizes = st.lists(st.integers(1, most), min_size=1, max_size=4)

    def fill(widths: list[int]) -> st.SearchStrategy[list[Row]]:
        piece = [st.integers(0, width).map(lambda n, w=width: [i < n for i in range(w)]) for width in widths]
        return st.lists(st.tuples(*piece).map(list), min_size=1, max_size=3)

    return sizes.flatmap(fill)


def follow(rows: list[Row], visibility: object) -> list[Timeline]:
    timelines, past = [], None
    for piece in zip(*rows, strict=True):
        timelines.append(Timeline.follow(past, torch.tensor(list(piece)), visibility))
        past = timelines[-1].past
    return timelines


@given(rows=rows_of_pieces())
def test_positions_count_the_real_tokens_before(rows: list[Row]) -> None:
    timeline = follow(rows, masks.causal)[-1]
    for row, pieces in enumerate(rows):
        flat = [real for piece in pieces for real in piece]
        assert timeline.real[row].tolist() == flat
        for at, real in enumerate(flat):
            # Padding stands where the last real token before it does, so it never asks for a new position.
            expected = sum(flat[:at]) if real else max(sum(flat[:at]) - 1, 0)
            assert timeline.position[row, at] == expected
        assert timeline.real_now[row].tolist() == pieces[-1]
        assert timeline.position_now[row].tolist() == timeline.position[row, -len(pieces[-1]) :].tolist()


@given(rows=rows_of_pieces())
def test_causal_mask_of_every_piece_is_the_definition(rows: list[Row]) -> None:
    """A real query may look at a real token exactly when that is not later."""
    seen = 0
    for number, timeline in enumerate(follow(rows, masks.causal)):
        width = len(rows[0][number])
        assert timeline.queries == width
        for row, pieces in enumerate(rows):
            flat = [real for piece in pieces[: number + 1] for real in piece]
            for query in (at for at in range(seen, seen + width) if flat[at]):
                allowed = [real and key <= query for key, real in enumerate(flat)]
                if timeline.mask is None:
                    assert all(allowed)
                else:
                    mask = timeline.mask.expand(len(rows), 1, width, len(flat))
                    assert mask[row, 0, query - seen].tolist() == allowed
        seen += width


@given(rows=rows_of_pieces())
def test_without_a_visibility_all_real_tokens_are_seen(rows: list[Row]) -> None:
    timeline = follow(rows, None)[-1]
    if timeline.mask is None:
        assert timeline.real.all()
    else:
        assert torch.equal(timeline.mask, timeline.real[:, None, None, :])


def test_the_newest_token_alone_needs_no_mask() -> None:
    past = Past(torch.ones(2, 3, dtype=torch.bool), torch.arange(3).expand(2, 3), torch.full((2,), 3))
    assert Timeline.follow(past, torch.ones(2, 1, dtype=torch.bool), masks.causal).mask is None


def test_no_new_tokens_leave_the_axis_as_it_is() -> None:
    past = Past(torch.tensor([[True, True, False]]), torch.tensor([[0, 1, 1]]), torch.tensor([2]))
    timeline = Timeline.follow(past, torch.zeros(1, 0, dtype=torch.bool), masks.causal)
    assert timeline.real_now.shape == timeline.position_now.shape == (1, 0)
    assert torch.equal(timeline.position, past.position)
    assert timeline.mask is not None
    assert timeline.mask.shape == (1, 1, 0, 3)


@given(rows=rows_of_pieces(), reach=st.integers(0, 6))
def test_a_shortened_past_loses_only_what_is_out_of_reach(rows: list[Row], reach: int) -> None:
    past = follow(rows, None)[-1].past
    short = past.nearest(reach)
    more = torch.ones(len(past.real), 2, dtype=torch.bool)
    whole, cut = (Timeline.follow(p, more, masks.causal) for p in (past, short))
    assert torch.equal(whole.position_now, cut.position_now)
    assert torch.equal(whole.total, cut.total)
    for row in range(len(more)):
        kept = set(cut.position[row][cut.real[row]].tolist())
        assert set(range(max(0, int(past.total[row]) - reach), int(whole.total[row]))) <= kept
    if bool(past.real.all()):
        assert short.real.shape[1] == min(reach, past.real.shape[1])


@given(rows=rows_of_pieces())
def test_one_more_real_token_is_what_follows(rows: list[Row]) -> None:
    past = follow(rows, None)[-1].past
    one = torch.ones(len(past.real), 1, dtype=torch.bool)
    for before in (past, past.nearest(0)):
        got, wanted = Timeline.one_more(before), Timeline.follow(before, one, masks.causal)
        for mine, theirs in zip(got[:2], wanted[:2], strict=True):
            assert torch.equal(mine, theirs)
        assert torch.equal(got.total, wanted.total)
        assert got.is_one_real == bool(before.real.all())
        if got.mask is not None and wanted.mask is not None:
            assert torch.equal(got.mask.expand_as(wanted.mask), wanted.mask)
        assert (got.mask is None) == (wanted.mask is None)
