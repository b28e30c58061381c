"""Questions with answers to choose among: what is given, then the choices, of which one is right.

As a line of text a question is what is given and its choices, with tabs between them; or a JSON object with
"context", "question" (either may be missing) and "choices".
"""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

from pydantic import Field, model_validator

from regard.core.errors import DataError, nearest
from regard.data.data import DataSpec
from regard.data.examples import Example, Examples, PreparedExamples, report_of
from regard.data.given import fingerprint_of, name_of
from regard.data.holding_out import held_out, parted
from regard.data.json_items import json_items, kind_of, text_of
from regard.data.layouts import LayoutSpec, Reading
from regard.data.letters import WHOLE_WORDS, words_of
from regard.data.lexicon import Lexicon
from regard.data.lines import read_lines, shown
from regard.data.places import ending, to_be_judged_on, to_learn_from
from regard.data.tables import table_rows
from regard.data.tokenizers import Tokenizer, TokenizerSpec

BETWEEN = "\t"
KEYS: dict[str, tuple[str, ...]] = {
    "context": ("context", "article", "passage", "premise", "sent1", "ctx", "text"),
    "question": ("question", "ask", "sent2"),
    "choices": ("choices", "options", "endings", "alternatives"),
    "label": ("label", "answer", "gold", "correct", "answerkey"),
}
"""Names that keys and columns go by, the first that is there counts."""
_NUMBERED = re.compile(r"(?:choice|ending|option|alternative|answer)s?[ _-]?(?:\d+|[a-e])?")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

GivenChoices: TypeAlias = str | Path | Sequence[str | Path] | Iterable[tuple[str, ...]]
"""A file, or questions as they are: a line of text, and the number of the right choice as a text."""


class Question(NamedTuple):
    given: str
    choices: tuple[str, ...]
    right: int | None
    """Counted from 0; None where nobody said."""
    file: str
    line: int

    @property
    def text(self) -> str:
        return BETWEEN.join((self.given, *self.choices))


class ChoicesSpec(DataSpec):
    """How questions become batches: each choice a row, [given; choice]."""

    fields: ClassVar[tuple[str, ...]] = ("text",)

    columns: tuple[str, ...] = ()
    """Names of the columns of a table without a header, such as [context, choice, choice, label]; "-" is
    passed over. Without them the first is the context and the last the label."""
    counts_from: int = Field(default=0, ge=0, le=1)
    """The number of the first choice, where labels are numbers."""
    tokenizer: TokenizerSpec = TokenizerSpec()
    letters: bool = False
    """Give the model the letters of every word, too."""
    layout: LayoutSpec = LayoutSpec()
    batch_tokens: int = Field(default=2048, ge=1)
    """Most tokens of a batch, padding counted; a question that has more is a batch of its own."""
    longest: int = Field(default=256, ge=8, le=32_000)
    """Most tokens of a row, marks counted; longer ones are cut and reported."""
    held_out: float = Field(default=0.1, ge=0.0, le=0.5)
    """Share of the questions kept for validation when no validation data is given."""
    held_out_most: int = Field(default=2000, ge=1)
    """Most questions kept for validation that way."""

    @model_validator(mode="after")
    def _possible(self) -> "ChoicesSpec":
        if self.longest > self.batch_tokens:
            raise ValueError(f"longest={self.longest} does not fit into batch_tokens={self.batch_tokens}")
        if self.letters and self.tokenizer.unit not in WHOLE_WORDS:
            raise ValueError(f"letters are those of words, but unit={self.tokenizer.unit!r} cuts words: word")
        return self

    def prepare(
        self,
        train: GivenChoices,
        valid: GivenChoices | None,
        seed: int,
        known: Lexicon | None,
        cache: Path | None,
    ) -> PreparedExamples:
        started = time.perf_counter()
        rows = self.questions(train)
        if valid is None:
            kept = held_out((row.text for row in rows), self.held_out, self.held_out_most, seed)
            rows, judged = parted(rows, kept)
        else:
            judged = self.questions(valid)
        if not rows:
            raise DataError("there is no question to train on", file=name_of(train, "given questions"))
        tokenizer = known["text"] if known is not None else self._learned(rows)
        lexicon = Lexicon({"text": tokenizer.with_tokens(self.layout.new_tokens)})
        encoded, kept_back = (self._encoded(some, lexicon["text"]) for some in (rows, judged))
        seconds = time.perf_counter() - started
        report = report_of(
            name_of(train, "given questions"), lexicon, encoded, kept_back, self.longest, 0, seconds
        )
        widest = max(example.tokens for part in (encoded, kept_back) for example in part.encoded)
        budget = max(self.batch_tokens, widest)
        fingerprint = fingerprint_of(
            *([(row.text, str(row.right)) for row in some] for some in (rows, judged))
        )
        return PreparedExamples(lexicon, encoded, kept_back, budget, seed, fingerprint, report)

    def find(self, data: Any, valid: Any | None) -> tuple[Any, Any | None]:
        return to_learn_from(data, valid)

    def records(self, data: str) -> list[tuple[str, ...]]:
        """The question as a line of text, and which choice is right, counted from 0."""
        return [(row.text, str(row.right)) for row in self.questions(to_be_judged_on(data))]

    def questions(self, given: GivenChoices) -> list[Question]:
        """Every one of them with a right choice."""
        found = list(self._questions(given))
        for question in found:
            if question.right is None:
                raise DataError(
                    f"it is not said which choice is right{nearest('label', KEYS['label'])}",
                    file=question.file,
                    line=question.line,
                )
        return found

    def question_of(self, text: str, line: int) -> Question:
        """A line that is asked about."""
        if text.lstrip().startswith("{"):
            try:
                return self._from_object(json.loads(text), "", line)
            except json.JSONDecodeError:
                pass  # a text may begin like that
        return _checked(Question(*_parted(text, line), None, "", line))

    def rows_of(self, tokenizer: Tokenizer, questions: Sequence[Question]) -> list[tuple[Reading, ...]]:
        """A row for every choice."""
        texts = list(dict.fromkeys(chain.from_iterable((q.given, *q.choices) for q in questions)))
        ids = dict(zip(texts, tokenizer.encode_many(texts), strict=True))
        words = {text: words_of(tokenizer, text) for text in texts} if self.letters else {}
        return [
            tuple(self._row(tokenizer, ids, words, question.given, choice) for choice in question.choices)
            for question in questions
        ]

    def _row(
        self, tokenizer: Tokenizer, ids: dict[str, list[int]], words: dict[str, list[str]], *texts: str
    ) -> Reading:
        reading = self.layout.lay(tokenizer, [ids[text] for text in texts], self.longest)
        if not words:
            return reading
        return reading._replace(words=self.layout.lay_words([words[text] for text in texts], self.longest))

    def _learned(self, rows: Sequence[Question]) -> Tokenizer:
        return Tokenizer.train(self.tokenizer, [text for row in rows for text in (row.given, *row.choices)])

    def _encoded(self, rows: Sequence[Question], tokenizer: Tokenizer) -> Examples:
        encoded = [
            Example(readings, [int(row.right or 0), len(row.choices)])
            for row, readings in zip(rows, self.rows_of(tokenizer, rows), strict=True)
        ]
        return Examples(encoded, [(row.text, str(row.right)) for row in rows])

    def _questions(self, given: GivenChoices) -> Iterator[Question]:
        if isinstance(given, str | Path):
            given = (given,)
        for line, row in enumerate(given, start=1):
            if isinstance(row, str | Path):
                yield from self._from_file(row)
                continue
            text, label = row
            question = Question(*_parted(text, line), None, "given questions", line)
            yield _checked(question._replace(right=self._right(label, question)))

    def _from_file(self, path: str | Path) -> Iterator[Question]:
        name, kind = shown(path), ending(path)
        if kind in ("jsonl", "json"):
            for line, item in json_items(read_lines(path), name):
                yield self._from_object(item, name, line)
            return
        columns: Sequence[str] = self.columns
        for line, cells in table_rows(path, kind == "csv"):
            if not columns:
                names = [cell.strip().lower() for cell in cells]
                if "label" in names or any(alias in names for alias in KEYS["label"]):
                    columns = names
                    continue
                columns = ("context", *["choice"] * (len(cells) - 2), "label")
            if len(cells) != len(columns):
                said = f"expected {len(columns)} columns ({', '.join(columns)}), found {len(cells)}"
                raise DataError(said, file=name, line=line)
            named: dict[str, Any] = {"choices": []}
            for column, cell in zip(columns, cells, strict=True):
                if _NUMBERED.fullmatch(column) and column not in KEYS["label"]:
                    named["choices"].append(cell)
                else:
                    named[column] = cell
            yield self._from_object(named, name, line)

    def _from_object(self, item: Any, name: str, line: int) -> Question:
        if not isinstance(item, Mapping):
            raise DataError(f"expected an object with 'choices', got {kind_of(item)}", file=name, line=line)
        item = {str(key).lower(): value for key, value in item.items()}
        keys = {field: next((key for key in names if key in item), None) for field, names in KEYS.items()}
        given = " ".join(
            _one_line(text_of(item[key], key, name, line))
            for key in (keys["context"], keys["question"])
            if key is not None and item[key]
        )
        choices = tuple(_one_line(text_of(v, "choices", name, line)) for v in _choices(item, keys["choices"]))
        question = Question(given, choices, None, name, line)
        label = None if keys["label"] is None else item[keys["label"]]
        return _checked(question._replace(right=None if label is None else self._right(label, question)))

    def _right(self, label: Any, question: Question) -> int:
        """A number, a letter, or the right choice itself."""
        said = text_of(label, "label", question.file, question.line).strip()
        if said in question.choices:
            return question.choices.index(said)
        letter = _LETTERS.find(said.lower()) if len(said) == 1 else -1
        number = int(said) - self.counts_from if said.lstrip("-").isdigit() else letter
        if not 0 <= number < len(question.choices):
            last = len(question.choices) - 1 + self.counts_from
            raise DataError(
                f"expected a number from {self.counts_from} to {last}, a letter or one of the choices, "
                f"found {said!r}",
                file=question.file,
                line=question.line,
                field="label",
            )
        return number


def _parted(text: str, line: int) -> tuple[str, tuple[str, ...]]:
    given, *choices = text.split(BETWEEN)
    return given, tuple(choices)


def _choices(item: Mapping[str, Any], key: str | None) -> list[Any]:
    if key is None:
        return [
            item[name] for name in sorted(item) if _NUMBERED.fullmatch(name) and name not in KEYS["label"]
        ]
    value = item[key]
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):
        return list(value["text"])
    if not isinstance(value, list):
        return []
    return [part["text"] if isinstance(part, Mapping) and "text" in part else part for part in value]


def _checked(question: Question) -> Question:
    said = None
    if len(question.choices) < 2:
        said = (
            f"a question needs two choices or more, found {len(question.choices)}; on a line of text there "
            "are tabs between what is given and each of them"
        )
    elif not all(choice.strip() for choice in question.choices):
        said = "a choice is empty"
    if said is not None:
        raise DataError(said, file=question.file or None, line=question.line)
    return question


def _one_line(text: str) -> str:
    return " ".join(text.split())
