"""Text for a page: a little of Markdown, everything else escaped.

Blocks are set apart by empty lines: paragraphs, lists ("- " or "1. "), code (four spaces before every line, or between lines of
```). Inside a paragraph or an item: `code`, *emphasis*, **strong**, and [text](#place) or [text](folder/file) for a place on the page
or a file beside it. An address that leads elsewhere (http:, //host, javascript:) stays plain text; only a paper may be linked to, at
https://arxiv.org/abs/ or https://doi.org/: nothing is loaded from there, a reader who wants it goes there.
Formulas are plain Unicode; an asterisk after a letter (V*, π*) is an asterisk.

`plain` protects text that is not markup, such as a label from a user's file, within text that is.
"""

from __future__ import annotations

import re
from html import escape

_MARKS = re.compile(
    r"\\(?P<itself>[\\`*\[\]])"
    r"|`(?P<code>[^`]+)`"
    r"|\*\*(?=\S)(?P<strong>.+?)(?<=\S)\*\*"
    r"|(?<![\w)\]*])\*(?=[^\s*])(?P<emphasis>[^*]+?)(?<=[^\s*])\*(?![\w*])"
    r"|\[(?P<text>[^\[\]]+)\]\((?P<target>[^()\s]+)\)"
)
_ITEM = re.compile(r"(?:-|(?P<number>\d+)\.)\s+")


def plain(text: str) -> str:
    """`text` so that `markup` and `inline` show it letter by letter."""
    return re.sub(r"([\\`*\[\]])", r"\\\1", str(text))


def inline(text: str) -> str:
    """HTML of a line of marked text."""
    made, at = "", 0
    for found in _MARKS.finditer(text):
        made += escape(text[at : found.start()]) + _one(found)
        at = found.end()
    return made + escape(text[at:])


def markup(text: str) -> str:
    """HTML of marked text with blocks."""
    made: list[str] = []
    for block in _blocks(text):
        lines = block.splitlines()
        if block.startswith("```"):
            made.append(_code(lines[1:]))
        elif all(line.startswith("    ") for line in lines):
            made.append(_code([line[4:] for line in lines]))
        elif found := _ITEM.match(block):
            kind = "ol" if found["number"] else "ul"
            made.append(f"<{kind}>{''.join(f'<li>{inline(item)}</li>' for item in _items(lines))}</{kind}>")
        else:
            made.append(f"<p>{inline(' '.join(line.strip() for line in lines))}</p>")
    return "\n".join(made)


def local(target: str) -> bool:
    """Does a link stay on the page, or beside it?"""
    return not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|\\|/", target)


def of_a_paper(target: str) -> bool:
    """Does a link lead to a paper?"""
    return bool(re.fullmatch(r"https://(arxiv\.org/abs|doi\.org)/[\w./-]+", target))


def _one(found: re.Match[str]) -> str:
    if found["itself"]:
        return escape(found["itself"])
    if found["code"]:
        return f"<code>{escape(found['code'])}</code>"
    for tag in ("strong", "emphasis"):
        if found[tag]:
            name = "em" if tag == "emphasis" else tag
            return f"<{name}>{inline(found[tag])}</{name}>"
    if local(found["target"]) or of_a_paper(found["target"]):
        return f'<a href="{escape(found["target"])}">{inline(found["text"])}</a>'
    return escape(found[0])


def _blocks(text: str) -> list[str]:
    """Blocks between empty lines; a fence of ``` keeps its empty lines."""
    blocks: list[list[str]] = [[]]
    fenced = False
    for line in text.strip("\n").expandtabs(4).splitlines():
        if line.lstrip().startswith("```"):
            if fenced:
                blocks.append([])
            else:
                blocks.append(["```"])
            fenced = not fenced
        elif fenced or line.strip():
            blocks[-1].append(line)
        else:
            blocks.append([])
    return ["\n".join(block) for block in blocks if block]


def _items(lines: list[str]) -> list[str]:
    """The items of a list; a line without a mark goes on with the one before."""
    items: list[str] = []
    for line in lines:
        found = _ITEM.match(line)
        if found:
            items.append(line[found.end() :])
        else:
            items[-1] += " " + line.strip()
    return items


def _code(lines: list[str]) -> str:
    return f'<pre tabindex="0"><code>{escape(chr(10).join(lines))}</code></pre>'
