"""Documents: with identity as translator nothing changes, with capitals nothing but the texts."""

import re
import string

import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from regard.core.errors import DataError, UsageError
from regard.data.translatable.document import Document, Flow, between, format_of, open_document
from regard.data.translatable.placeholders import PLACEHOLDERS

SRT = """1
00:00:01,000 --> 00:00:02,500
Where do you come
from, <i>my friend</i>?

2
00:00:03,000 --> 00:00:04,000 X1:40
- From the sea.
- {\\an8}And you?

3
00:00:05,000 --> 00:00:06,000
1984
"""
MARKDOWN = """---
title: left alone
---
# A *first* heading

Some text with `code here`, a [link to it](https://example.org/a_b "t"), **bold words** and
a second line\\
after a hard break, snake_case and 2 * 3 * x.

- one item
  that goes on
- [ ] another: <b>tag</b> &amp; more

> a quote
> over lines

```python
untouched = "code"
```

    indented code

| head one | head two |
|----------|:--------:|
| cell `x` | ![alt text](image.png) |

[ref]: https://example.org "Title"
See [ref] and [that one][ref], footnote[^1].

[^1]: The note.

<div>raw html</div>
"""
HTML = """<!doctype html>
<html><head><title>A page</title><style>p { color: red }</style><script>var x = "text";</script></head>
<body class="a b"><p>Hello,
   <b>dear</b> reader &amp; friend&nbsp;!</p><!-- a note -->
<ul><li>one<li>two</ul><code>keep me</code><pre>and
me</pre><span translate="no">Regard <b>too</b></span><img alt="x" src=a.png><br/>a < b
<p class="notranslate">not <p>this</p>
</body></html>
"""
PO = """# translators
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: de\\n"

#. comment
#: src/a.c:10
#, c-format
msgid "Opened %d files in %(folder)s"
msgstr ""

msgid "done"
msgstr "fertig"

msgctxt "menu"
msgid "One <b>file</b>"
msgid_plural "{count} <b>files</b>"
msgstr[0] ""
msgstr[1] ""
msgstr[2] ""

#~ msgid "old"
#~ msgstr "alt"
"""
XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
  <file original="a" source-language="en" target-language="de" datatype="plaintext">
    <body>
      <trans-unit id="1">
        <source>Press <g id="1">this key</g> or <ph id="2">&lt;br/&gt;</ph> wait %s</source>
      </trans-unit>
      <trans-unit id="2">
        <source>done</source>
        <target>fertig</target>
      </trans-unit>
      <trans-unit id="3" translate="no"><source>Regard</source></trans-unit>
      <trans-unit id="4"><source>more</source><target/><alt-trans><source>x</source></alt-trans></trans-unit>
    </body>
  </file>
</xliff>
"""


def opened(whole: str, kind: str) -> Document:
    return open_document(whole.encode(), kind, "a file")


def loud(whole: str, kind: str) -> str:
    document = opened(whole, kind)
    return document.replaced([text.upper() for text in document.texts])


@pytest.mark.parametrize(("whole", "kind"), [(SRT, "srt"), (MARKDOWN, "markdown"), (HTML, "html")])
def test_identity_changes_not_one_byte(whole: str, kind: str) -> None:
    document = opened(whole, kind)
    assert len(document.texts) >= 4
    assert all("\n" not in text and text.strip() == text for text in document.texts)
    # A reference may be written as the character it stands for.
    same = whole.replace("&nbsp;", "\xa0").replace(" < ", " &lt; ") if kind == "html" else whole
    assert document.replaced(document.texts) == same


def test_subtitles() -> None:
    assert opened(SRT, "srt").texts == ["Where do you come from,", "my friend", "From the sea.", "And you?"]
    changed = loud(SRT, "srt")
    assert "WHERE DO YOU COME\nFROM, <i>MY FRIEND</i>?" in changed
    assert "- FROM THE SEA.\n- {\\an8}AND YOU?" in changed
    assert changed.lower() == SRT.lower()
    assert changed.count("X1:40") == 1
    with pytest.raises(DataError, match=r"a file: .*no line with times"):
        opened("plain text", "srt")


def test_markdown() -> None:
    texts = opened(MARKDOWN, "markdown").texts
    assert {"heading", "link to it", "bold words", "one item that goes on", "a quote over lines"} <= set(
        texts
    )
    assert {"head one", "alt text", "The note.", "tag"} <= set(texts)
    changed = loud(MARKDOWN, "markdown")
    assert changed.lower() == MARKDOWN.lower()
    for kept in (
        "title: left alone", "`code here`", '](https://example.org/a_b "t")', '"code"', "    indented code",
        "](image.png)", '[ref]: https://example.org "Title"', "[^1]", "<div>raw html</div>", "<b>TAG</b> &",
    ):  # fmt: skip
        assert kept in changed
    assert "# A *FIRST* HEADING" in changed
    assert "> A QUOTE\n> OVER LINES" in changed


def test_html() -> None:
    texts = opened(HTML, "html").texts
    assert texts[:4] == ["A page", "Hello,", "dear", "reader & friend\xa0!"]
    assert "one" in texts
    assert not {"keep me", "too", "this"} & set(texts)
    changed = loud(HTML, "html")
    tags = re.compile(r"<[^<>]+>")
    assert tags.findall(changed) == tags.findall(HTML)
    assert "HELLO,\n   <b>DEAR</b> READER &amp; FRIEND\xa0!</p>" in changed
    assert '<span translate="no">Regard <b>too</b></span>' in changed
    dangerous = opened("<p>x</p>", "html").replaced(["<script>&"])
    assert dangerous == "<p>&lt;script&gt;&amp;</p>"


def test_catalogues() -> None:
    texts = opened(PO, "po").texts
    assert texts == ["Opened", "files in", "One", "file", "files"]
    before, after = polib.pofile(PO), polib.pofile(loud(PO, "po"))
    assert [(entry.msgid, entry.comment, entry.flags, entry.msgctxt) for entry in before] == [
        (entry.msgid, entry.comment, entry.flags, entry.msgctxt) for entry in after
    ]
    opened_files, done, plural, old = after
    assert opened_files.msgstr == "OPENED %d FILES IN %(folder)s"
    assert done.msgstr == "fertig"
    assert plural.msgstr_plural == {
        0: "ONE <b>FILE</b>",
        1: "{count} <b>FILES</b>",
        2: "{count} <b>FILES</b>",
    }
    assert (old.obsolete, old.msgstr) == (1, "alt")
    assert after.metadata == before.metadata


def test_xliff() -> None:
    changed = loud(XLIFF, "xliff")
    assert '<target>PRESS <g id="1">THIS KEY</g> OR <ph id="2">&lt;br/&gt;</ph> WAIT %s</target>' in changed
    assert "<target>fertig</target>" in changed
    assert '<trans-unit id="3" translate="no"><source>Regard</source></trans-unit>' in changed
    assert "<target>MORE</target>" in changed
    sources = [etree.tostring(one) for one in etree.fromstring(XLIFF.encode()).iter("{*}source")]
    assert [etree.tostring(one) for one in etree.fromstring(changed.encode()).iter("{*}source")] == sources
    two = XLIFF.replace("trans-unit", "segment").replace("document:1.2", "document:2.0")
    assert "<target>MORE</target>" in loud(two, "xliff")
    with pytest.raises(DataError, match="no XML"):
        opened("<xliff>", "xliff")
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><xliff><file><unit><source>&a;</source></unit></file></xliff>'
    assert "aaaa" not in "".join(opened(bomb, "xliff").texts)


@pytest.mark.parametrize(
    "kept",
    ["%s", "%(name)s", "%1$d", "%.2f", "{0}", "{name!r}", "{{ x }}", "${HOME}", "<b>", "</a>", "&nbsp;",
     "\\n", "https://example.org/a?b=c", "me@example.org"],
)  # fmt: skip
def test_placeholders_are_never_part_of_a_text(kept: str) -> None:
    whole = f"before {kept} after"
    assert [whole[span.start : span.end] for span in between(whole, PLACEHOLDERS)] == ["before", "after"]


def test_a_percent_sign_in_a_sentence_is_text() -> None:
    whole = "100 % sure"
    assert [whole[span.start : span.end] for span in between(whole, PLACEHOLDERS)] == [whole]


WORDS = st.lists(st.text(string.ascii_letters, min_size=1, max_size=9), min_size=1, max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=5), WORDS)
@settings(max_examples=60, deadline=None)
def test_flows_break_at_like_places(lines: list[list[str]], other: list[str]) -> None:
    raw = "\n".join(" ".join(words) for words in lines)
    flow = Flow(raw)
    assert flow.replaced(flow.text) == raw
    said = flow.replaced(" ".join(other))
    assert said.split() == other
    assert said.count("\n") == min(len(lines) - 1, len(other) - 1)


@given(st.text(st.sampled_from("ab <>/&;-!'\"=\npcode"), max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_html_keeps_its_tags(whole: str) -> None:
    document = opened(whole, "html")
    assert len(document.texts) == len(opened(document.replaced(document.texts), "html").texts)
    opened(whole, "markdown").replaced(opened(whole, "markdown").texts)


@given(st.text(st.sampled_from("ab *_`[]()#->|\n1.\\!"), max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_markdown_stays_as_it_is(whole: str) -> None:
    document = opened(whole, "markdown")
    assert document.replaced(document.texts) == whole


def test_which_format_a_file_has() -> None:
    from pathlib import Path

    assert format_of(Path("a.MD")) == "markdown"
    assert format_of(Path("a.xlf")) == "xliff"
    assert format_of(Path("a.txt")) is None
    assert format_of(Path("a.md"), "lines") is None
    with pytest.raises(UsageError, match=r"--format hmtl: not known \(did you mean 'html'"):
        format_of(Path("a"), "hmtl")
