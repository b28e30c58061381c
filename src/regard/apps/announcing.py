"""What a person is told before training begins: the data and the model. All on stderr."""

import sys

from regard.apps.training import Listener
from regard.data.pairs import PairsReport
from regard.training.weights import Transfer


class Announcements(Listener):
    def on_data(self, report: PairsReport) -> None:
        tokens = f"{report.source_tokens:,} → {report.target_tokens:,} tokens"
        words = f"{report.source_vocabulary:,} → {report.target_vocabulary:,}"
        self.say(
            f"data   {report.examples:,} examples and {report.validation:,} for validation, {tokens}, "
            f"vocabulary {words}, {report.padding_share:.1%} padding, {report.seconds:.1f} s"
        )
        if report.validation_seen:
            self.say(f"       {report.validation_seen:,} validation sources also occur in training")
        if report.empty:
            first = ", ".join(report.first_empty)
            self.say(f"       {report.empty:,} rows with an empty side are left out: {first}")
        if report.too_long:
            self.say(f"       {report.too_long:,} rows longer than data.longest are left out")

    def on_model(self, parameters: int, transfer: Transfer | None) -> None:
        self.say(f"model  {parameters:,} parameters")
        if transfer is not None:
            self.say(f"       {len(transfer.taken)} tensors taken over, {len(transfer.untouched)} start anew")
            for name in transfer.untouched[:8]:
                self.say(f"       starts anew: {name}")

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)
