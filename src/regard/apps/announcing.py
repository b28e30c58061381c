"""What a person is told before training begins: the data and the model. All on stderr."""

import sys
from collections.abc import Sequence

from regard.apps.training import Listener
from regard.apps.vectors import Coverage
from regard.data.data import DataReport
from regard.objectives.teaching import Teaching
from regard.training.weights import Transfer


class Announcements(Listener):
    def on_data(self, report: DataReport) -> None:
        for number, line in enumerate(report.summary()):
            self.say(f"{'data' if number == 0 else '':<6} {line}")

    def on_model(self, parameters: int, transfer: Transfer | None) -> None:
        self.say(f"model  {parameters:,} parameters")
        if transfer is not None:
            self.say(f"       {len(transfer.taken)} tensors taken over, {len(transfer.untouched)} start anew")
            for name in transfer.grown:
                self.say(f"       has new rows: {name}")
            for name in transfer.untouched[:8]:
                self.say(f"       starts anew: {name}")

    def on_teaching(self, runs: Sequence[str], teaching: Teaching) -> None:
        parameters = sum(p.numel() for p in teaching.teacher.parameters())
        self.say(
            f"taught by {' and '.join(runs)}, {parameters:,} parameters: {teaching.share:g} of what is wanted"
        )

    def on_vectors(self, coverage: Coverage) -> None:
        self.say(f"words  {coverage.summary()}")

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)
