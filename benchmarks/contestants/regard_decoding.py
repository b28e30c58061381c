"""Regard answers lines as ``regard run`` does."""

import decoding
import protocol

import regard


def main() -> None:
    asked = decoding.asked()
    run = regard.load(asked.run, engine=asked.engine)
    kind = ["search.kind=greedy"] if asked.beam == 1 else ["search.kind=beam", f"search.size={asked.beam}"]
    search = run.spec.override(kind).search

    def step() -> protocol.Step:
        if asked.alone is None:
            return decoding.answered(
                [answer.text for answer in run.stream(asked.lines, search, detail=False)]
            )
        return decoding.answered(
            [answer.text for line in asked.lines for answer in run.stream([line], search, detail=False)]
        )

    step()
    protocol.ready(engine=run.answered_by(search))
    protocol.serve(step)


main()
