"""How Hugging Face's Trainer takes turns: one of its steps is one step asked for."""

import time
from typing import Any

import protocol
from transformers import TrainerCallback


class TakesTurns(TrainerCallback):
    def __init__(self) -> None:
        self.requests = protocol.requests()
        self.left, self.began = 0, 0.0
        self.taken: list[protocol.Step] = []
        self.size = protocol.Step(0, 0)

    def on_step_begin(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if self.left == 0:
            self.left = next(self.requests, 0)
            if self.left == 0:
                control.should_training_stop = True
            self.began, self.taken = time.perf_counter(), []

    def on_step_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        self.taken.append(self.size)
        self.left -= 1
        if self.left == 0:
            protocol.done(self.began, self.taken)
