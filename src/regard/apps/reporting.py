"""The page a run leaves behind: curves, samples, alignments."""

import json

from regard.apps.session import Run
from regard.data.data import PreparedData
from regard.inspection.report import report_page
from regard.training.durable import replace_file
from regard.training.result import TrainingResult
from regard.training.run_folder import RunFolder

SAMPLES = 40
EXAMPLES = 4
"""Samples whose attention is drawn."""


def write_report(run: Run, result: TrainingResult, data: PreparedData, folder: RunFolder) -> None:
    """The best weights answer some of the validation examples here."""
    shown = data.examples(SAMPLES)
    answers = run.answers((source for source, _ in shown), truncate=True)
    log = folder.log_path.read_text(encoding="utf-8").splitlines()
    facts = {"best step": result.best_step, "weights": result.variant, **result.scores}
    facts |= {"training seconds": round(result.seconds, 1)}
    facts |= {f"data: {name.replace('_', ' ')}": value for name, value in data.report.facts().items()}
    page = report_page(
        title=folder.path.name,
        spec_yaml=run.spec.to_yaml(),
        events=[json.loads(line) for line in log],
        samples=[
            {"source": source, "reference": reference, "answer": answer.text}
            for (source, reference), answer in zip(shown, answers, strict=True)
        ],
        traces=[run.trace(answer.source, answer.text) for answer in answers[:EXAMPLES]],
        facts=facts,
    )
    replace_file(folder.path / "report.html", page.encode())
