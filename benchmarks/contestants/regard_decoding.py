"""Regard answers lines as ``regard run`` does."""

import decoding
import protocol

import regard
from regard.apps.settling import settle

_UNTIL_IT_KNOWS = 8
"""Times that all lines are answered until it has tried every size of batches."""


def main() -> None:
    asked = decoding.asked()
    run = regard.load(asked.run, engine=asked.engine, precision=asked.precision, shortlist=asked.shortlist)
    settle()
    kind = ["search.kind=greedy"] if asked.beam == 1 else ["search.kind=beam", f"search.size={asked.beam}"]
    search = run.spec.override(kind).search

    def texts() -> list[str]:
        if asked.alone is None:
            return [answer.text for answer in run.stream(asked.lines, search, detail="text")]
        return [answer.text for line in asked.lines for answer in run.stream([line], search, detail="text")]

    decoding.leave(texts(), asked.answers)
    if asked.alone is None and asked.engine != "torch":
        for _ in range(_UNTIL_IT_KNOWS):
            texts()
    protocol.ready(engine=run.answered_by(search))
    protocol.serve(lambda: decoding.answered(texts()))


main()
