"""Reading the pages: their text, their generated parts, the rows of a table, the blocks of code."""

from __future__ import annotations

import re

from tests.runtime.server import PROJECT_ROOT


def page(name: str) -> str:
    """A page's text."""
    return (PROJECT_ROOT / name).read_text(encoding="utf-8")


def block(name: str, mark: str) -> str:
    """The part of a page between the comments `begin MARK` and `end MARK`."""
    text = page(name)
    begin, end = f"<!-- begin {mark} -->", f"<!-- end {mark} -->"
    assert text.count(begin) == text.count(end) == 1
    return text.partition(begin)[2].partition(end)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of all tables' rows, without the heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads = {index - 1 for index, line in enumerate(lines) if re.fullmatch(r"[|-]+", line)}
    bodies = [line for index, line in enumerate(lines) if index not in heads and index - 1 not in heads]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in bodies]


def code(text: str, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
