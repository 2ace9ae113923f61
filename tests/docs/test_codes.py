"""Every code that can leave the service is asserted by some test, by its text or by its constant."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scripts import docs
from tests.runtime.server import PROJECT_ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass
class Named:
    """What the tests name: words inside of texts, and constants with the module that they come from."""

    words: set[str] = field(default_factory=set)
    constants: set[tuple[str, str]] = field(default_factory=set)


def named_in(files: Iterable[Path]) -> Named:
    """Texts and imports of these files; a text that says something about a function or module does not count."""
    named = Named()
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        sayings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in sayings:
                named.words.update(re.findall(r"\w+", node.value))
            elif isinstance(node, ast.ImportFrom):
                named.constants.update((node.module or "", alias.name) for alias in node.names)
    return named


def test_every_code_is_asserted_by_a_test() -> None:
    named = named_in(file for file in (PROJECT_ROOT / "tests").rglob("test_*.py") if file.parent.name != "docs")
    missing = set()
    for one in docs.declarations():
        module = "dcb_runtime." + one.module.removesuffix(".py").replace("/", ".")
        if one.code not in named.words and (module, one.constant) not in named.constants:
            missing.add(one.code)
    assert sorted(missing) == []
