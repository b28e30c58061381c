"""Dates as people write them in 48 locales → ISO 8601, generated from a seed.

Patterns and names are Unicode's CLDR, by way of Babel; variants that people also write are added, such as
"the 3rd of May 1979". The text alone must determine the date, so

- years have four digits;
- a numeric date begins with its year, or has dots or hyphens and begins with its day, or else (slashes: the
  order depends on the country) appears only if one number is above 12 or both are the same;
- no two locales use one name for different months (this keeps Croatian out: its *listopad* is October, in
  Polish and Czech it is November).

Every calendar day belongs to one split, whatever the seed: a test date occurs in training in no form at all.
"""

import hashlib
import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from babel import Locale

from regard.core.errors import UsageError
from regard.data.corpora.typos import with_typo
from regard.data.randomness import keyed

Split: TypeAlias = Literal["train", "valid", "test"]

# fmt: off
LOCALES = (
    "af", "ar_EG", "bg", "bn", "ca", "cs", "cy", "da", "de", "el", "en", "en_GB", "es", "et", "eu", "fa",
    "fi", "fil", "fr", "he", "hi", "hu", "hy", "id", "is", "it", "ja", "ka", "ko", "lt", "lv", "nb", "nl",
    "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "sw", "th", "tr", "uk", "vi", "zh",
)
# fmt: on
FIRST_YEAR, LAST_YEAR = 1900, 2099
LOWERED = 0.15
"""Share of the texts in small letters."""
UNPUNCTUATED = 0.1
"""Share of the texts with a named month that have lost their commas and full stops."""

SKELETONS = ("yMMMd", "yMMMEd", "yMMMMd", "yMMMMEEEEd", "yMd", "yMEd")
FREE: dict[str, tuple[str, ...]] = {
    "en": ("MMMM o, y", "o 'of' MMMM y", "'the' o 'of' MMMM, y", "EEEE, 'the' o 'of' MMMM y", "y-MM-dd"),
    "en_GB": ("o MMMM y", "o 'of' MMMM, y", "'the' o 'of' MMMM y", "EEEE o MMMM y", "d-MMM-y"),
    "de": ("'den' d. MMMM y", "'am' d. MMMM y", "EEEE, 'den' d. MMMM y", "y-MM-dd"),
    "fr": ("'le' o MMMM y", "o MMMM y", "'le' EEEE o MMMM y"),
    "es": ("'el' d 'de' MMMM 'de' y", "d 'de' MMMM 'del' y", "EEEE d 'de' MMMM 'de' y"),
    "it": ("'il' d MMMM y", "EEEE, d MMMM y"),
    "pt": ("'em' d 'de' MMMM 'de' y", "d MMMM y"),
    "nl": ("'op' d MMMM y", "'op' EEEE d MMMM y"),
    "da": ("'den' d. MMMM y",),
    "sv": ("'den' d MMMM y",),
    "nb": ("'den' d. MMMM y",),
    "pl": ("'dnia' d MMMM y 'r.'", "d MMMM y 'r.'"),
    "cs": ("'dne' d. MMMM y",),
    "ru": ("d MMMM y",),
    "uk": ("d MMMM y",),
    "tr": ("EEEE, d MMMM y",),
    "id": ("'tanggal' d MMMM y",),
    "ko": ("y년 M월 d일",),
    "vi": ("'ngày' d 'tháng' M 'năm' y",),
}
"""What CLDR does not list, in its notation; ``o`` is the day as an ordinal."""

_TOKEN = re.compile(r"'(?P<quoted>[^']*)'|(?P<field>([a-zA-Z])\3*)|(?P<other>[^a-zA-Z']+)")
_ZEROS = {"arab": 0x0660, "arabext": 0x06F0, "beng": 0x09E6}
_PUNCTUATION = str.maketrans("", "", ".,،")


class Dated(NamedTuple):
    """A date as written, in ISO 8601, and the locale whose way of writing it is."""

    source: str
    target: str
    locale: str


class Form:
    """One way to write a date in one locale, compiled from a CLDR pattern."""

    def __init__(self, pattern: str, locale: Locale) -> None:
        # Two-digit years leave the century open.
        self.pattern = re.sub(r"(?<![a-zA-Z])yy(?![a-zA-Z])", "y", pattern)
        tokens = [(m["quoted"] or m["other"], m["field"]) for m in _TOKEN.finditer(self.pattern)]
        self._parts = [_field(name, locale) if name else _literal(text or "'") for text, name in tokens]
        self.named = any(name and name[0] in "ML" and len(name) > 2 for _, name in tokens)
        # The order of the numbers and what stands between them, letters of other words masked.
        shown = (
            name[0].replace("L", "M") if name else re.sub("[dMy]", "_", text or "'") for text, name in tokens
        )
        skeleton = "".join(shown)
        self.clear = self.named or bool(re.search(r"y.*M.*d|d[^My]*[^My/\s\u200f][^My]*M.*y", skeleton))

    def write(self, day: date) -> str:
        return "".join(part(day) for part in self._parts)


def dates(split: Split, count: int, seed: int = 0, typos: float = 0.0) -> list[Dated]:
    """``count`` dates of a split; ``typos`` is the share of texts with one mistyped letter, never a digit."""
    days = _days()[split]
    random = keyed(seed, ("train", "valid", "test").index(split))
    which = random.integers(len(days), size=count).tolist()
    where = random.integers(len(LOCALES), size=count).tolist()
    chances = random.random((count, 4)).tolist()
    written = []
    for day, locale, (form, lower, bare, typo) in zip(which, where, chances, strict=True):
        text = _write(days[day], LOCALES[locale], form, lower < LOWERED, bare < UNPUNCTUATED)
        if typo < typos:
            text = with_typo(text, random)
        written.append(Dated(text, days[day].isoformat(), LOCALES[locale]))
    return written


def _write(day: date, locale: str, chance: float, lower: bool, bare: bool) -> str:
    either = day.day > 12 or day.day == day.month
    forms = forms_of(locale) if either else clear_forms_of(locale)
    form = forms[int(chance * len(forms))]
    text = form.write(day)
    if bare and form.named:
        text = text.translate(_PUNCTUATION)
    if lower:
        text = text.lower()
    return text.translate(_digits(locale))


@lru_cache(maxsize=len(LOCALES))
def forms_of(name: str) -> tuple[Form, ...]:
    """Short, medium, long, full, other usual orders, and free variants, each once."""
    locale = Locale.parse(name)
    patterns = [str(pattern.pattern) for pattern in locale.date_formats.values()]
    patterns += [
        str(locale.datetime_skeletons[s].pattern) for s in SKELETONS if s in locale.datetime_skeletons
    ]
    forms = [Form(pattern, locale) for pattern in (*patterns, *FREE.get(name, ()))]
    return tuple({form.pattern: form for form in forms}.values())


@lru_cache(maxsize=len(LOCALES))
def clear_forms_of(name: str) -> tuple[Form, ...]:
    """The forms that leave no doubt which number is the month."""
    return tuple(form for form in forms_of(name) if form.clear)


@lru_cache(maxsize=1)
def _days() -> dict[Split, list[date]]:
    first, last = date(FIRST_YEAR, 1, 1).toordinal(), date(LAST_YEAR, 12, 31).toordinal()
    days: dict[Split, list[date]] = {"train": [], "valid": [], "test": []}
    for number in range(first, last + 1):
        day = date.fromordinal(number)
        days[split_of(day)].append(day)
    return days


def split_of(day: date) -> Split:
    """One day in twenty is for testing, one for validation; the choice is a hash of the day."""
    twentieth = hashlib.sha256(day.isoformat().encode()).digest()[0] % 20
    return "test" if twentieth == 0 else "valid" if twentieth == 1 else "train"


@lru_cache(maxsize=len(LOCALES))
def _digits(name: str) -> dict[int, int]:
    zero = _ZEROS.get(Locale.parse(name).default_numbering_system)
    return {} if zero is None else {ord("0") + digit: zero + digit for digit in range(10)}


Part: TypeAlias = Callable[[date], str]


def _literal(text: str) -> Part:
    return lambda day: text


def _field(field: str, locale: Locale) -> Part:
    """A field of a CLDR pattern (Unicode TS 35, part 4) as a function of the day."""
    letter, length = field[0], len(field)
    context = "stand-alone" if letter in "Lc" else "format"
    width = {4: "wide", 5: "narrow"}.get(length, "abbreviated")
    if letter == "y":
        return lambda day: str(day.year)
    if letter == "d":
        return lambda day: f"{day.day:0{length}d}"
    if letter == "o":
        return lambda day: _ordinal(day.day, locale.language)
    if letter in "ML" and length <= 2:
        return lambda day: f"{day.month:0{length}d}"
    if letter in "ML":
        months = locale.months[context][width]
        return lambda day: str(months[day.month])
    if letter in "Ec":
        weekdays = locale.days[context][width]
        return lambda day: str(weekdays[day.weekday()])
    if letter == "G":
        return lambda day: str(locale.eras["abbreviated"][1])
    raise UsageError(f"{locale}: no field {field!r} in a date")


def _ordinal(day: int, language: str) -> str:
    if language == "fr":
        return "1er" if day == 1 else str(day)
    ending = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"
