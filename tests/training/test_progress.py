"""What people see while it trains."""

import io
from pathlib import Path

from regard.training.events import Noticed, Started, Stepped, Validated
from regard.training.progress import LiveProgress, Pace, PlainProgress, duration, progress
from tests.training import toy


def stepped(step: int, seconds: float, loss: float = 2.0) -> Stepped:
    return Stepped(step, 3, loss, 1e-3, 0.5, 100, seconds, 1234.0, None, {})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_quiet_is_silent() -> None:
    assert progress(quiet=True) == []


def test_a_terminal_gets_the_live_line_and_a_file_plain_ones() -> None:
    assert isinstance(progress(stream=Terminal())[0], LiveProgress)
    assert isinstance(progress(stream=io.StringIO())[0], PlainProgress)


def test_time_left_follows_from_the_pace_of_this_session() -> None:
    pace = Pace(Started(step=10, steps=40, seconds=100.0, budget=None))
    assert pace.left(stepped(20, 105.0)) == 10.0
    assert Pace(Started(0, None, 0.0, None)).left(stepped(20, 105.0)) is None


def test_the_budget_used_up_first_counts() -> None:
    pace = Pace(Started(0, 100, 0.0, 60.0))
    event = stepped(10, 15.0)
    pace.take(event)
    assert pace.left(event) == 45.0
    assert pace.done == 0.25


def test_plain_lines_come_now_and_then() -> None:
    now = [0.0]
    out = io.StringIO()
    watcher = PlainProgress(out, every=10.0, clock=lambda: now[0])
    watcher.on_start(Started(4, 40, 8.0, None))
    watcher.on_notice(Noticed(4, "went back"))
    for step in range(5, 16):
        now[0] += 4
        watcher.on_step(stepped(step, 4.0 * step))
    watcher.on_validation(Validated(15, {"loss": 1.5, "bleu": 20.25}, True, "ema", 60.0))
    lines = out.getvalue().splitlines()
    assert lines[0] == "going on from step 4"
    assert lines[1] == "note: went back"
    assert [line.split(" · ")[0] for line in lines[2:-1]] == ["step 7/40", "step 10/40", "step 13/40"]
    assert "epoch 3 · loss 2.0000 · rate 1.00e-03 · 1,234 tokens/s" in lines[2]
    assert lines[-1] == "step 15 validation (ema): loss 1.5000, bleu 20.2500 · best so far"


def test_rounded_products_are_told_of() -> None:
    def told(precision: str) -> str:
        out = io.StringIO()
        PlainProgress(out).on_start(Started(0, 40, 0.0, None, precision))
        return out.getvalue()

    assert told("bfloat16") == "products in bfloat16, all else in float32 (training.precision)\n"
    assert told("float32") == ""


def test_durations() -> None:
    assert [duration(s) for s in (0.4, 59.6, 61.0, 3600.0, 7384.0)] == [
        "0 s",
        "1 min 00 s",
        "1 min 01 s",
        "1 h 00 min",
        "2 h 03 min",
    ]


def test_a_training_is_shown_from_start_to_end(tmp_path: Path) -> None:
    for name, out in (("plain", io.StringIO()), ("live", Terminal())):
        toy.run(tmp_path / name, watchers=progress(stream=out))
        text = out.getvalue()
        assert "step 3 validation: loss" in text
        assert "done after 13 steps (steps)" in text
