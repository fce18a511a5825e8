# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The house rules on words: prose in Markdown is within 120 columns (tables and code are as wide as they
# are), and sentences of documents and comments begin with a noun, not with a clause or a bare pronoun.

import ast
import io
import pathlib
import re
import tokenize

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = ["include", "lib", "tools", "runtime", "test", "python"]
FILES = [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*")) if p.is_file()]
DOCUMENTS = [ROOT / "README.md", *(p for p in FILES if p.suffix == ".md")]
SLASHES = {".cpp", ".c", ".h", ".td", ".mlir"}
HASHES = {".txt", ".cmake", ".sh"}
OPENING = re.compile(r"(?:What|Which|Who|Whoever|Whatever|Whichever|Those|Of (?:what|those|these|two))[ ,:]")


def name(path):
    return str(path.relative_to(ROOT))


def is_text(path):
    return path.suffix in SLASHES | HASHES | {".py"} or path.suffix == "" and path.open("rb").read(2) == b"#!"


def prose(text):
    """The lines of Markdown that are neither code nor a row of a table, with their numbers."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if not (fenced or fence or line.startswith(("    ", "|"))):
            yield number, line


def joined(lines):
    """Paragraphs of numbered lines: those without a gap, an empty line or the head of a list's item between."""
    paragraph, last = [], 0
    for number, line in lines:
        item = re.match(r"\s*(?:[-*+]|\d+[.)]) +", line)
        if paragraph and (number != last + 1 or item or not line.strip()):
            yield " ".join(paragraph)
            paragraph = []
        if line.strip() and not line.startswith("#"):
            paragraph.append(line[item.end() if item else 0 :].strip())
        last = number
    if paragraph:
        yield " ".join(paragraph)


def in_markdown(text):
    yield from joined(prose(text))
    lines = text.split("\n")
    for line, following in zip(lines, lines[1:] + [""]):
        if line.startswith("|") and not following.startswith("|-"):  # no heads of tables
            yield from (cell.strip() for cell in line.split("|"))


def in_python(text):
    comments = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]
    yield from joined((t.start[0], t.string.lstrip("#!: ")) for t in comments)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from joined(enumerate((ast.get_docstring(node) or "").split("\n")))


def in_code(text, mark):
    """The comments that take whole lines, and those behind code."""
    lines = [re.match(r"\s*(?:%s)[/!<]*(?: (.*)|$)" % mark, line) for line in text.split("\n")]
    yield from joined((number, match[1] or "") for number, match in enumerate(lines) if match)
    for line in text.split("\n"):
        code, _, comment = line.partition(" " + mark)
        if code.strip():
            yield comment.lstrip("/!< ")


def paragraphs(path):
    text = path.read_text()
    if not OPENING.search(text):
        return
    if path.suffix == ".md":
        yield from in_markdown(text)
    elif path.suffix == ".py":
        yield from in_python(text)
    else:
        yield from in_code(text, "//" if path.suffix in SLASHES else "#")
        if path.suffix == ".td":
            for description in re.findall(r"\[\{(.*?)\}\]", text, re.DOTALL):
                yield from joined(prose(re.sub(r"^ {4}", "", description, flags=re.MULTILINE)))


def openings(paragraph):
    """The sentences of a paragraph that begin with a clause or a pronoun; questions may."""
    sentences = re.split(r"(?<=[.:;!?])\**\s+", paragraph.lstrip("*`"))
    return [s for s in sentences if OPENING.match(s.lstrip("*")) and not s.endswith("?")]


def test_rules_on_examples():
    text = "# What is it\n\nA line.\n\n    code\n\n```c++\nmore(code);\n```\n\n| What it is |\n|---|\n| What is |\n- an item\n  of two. What lines\n  do"
    assert [number for number, line in prose(text) if line] == [1, 3, 14, 15, 16]
    assert [s for p in in_markdown(text) for s in openings(p)] == ["What lines do", "What is"]
    assert openings("Results. Those of loops stay.") == ["Those of loops stay."]
    assert openings("**What has no code** is an error.") and not openings("Which operand is the weight?")
    assert list(filter(None, in_code("int a; // one\n/// two\n/// three\nb;", "//"))) == ["two three", "one"]
    assert list(in_python('"""One\ntwo."""\na = 1  # three\n')) == ["three", "One two."]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_prose_is_within_120_columns(path):
    assert not [number for number, line in prose(path.read_text()) if len(line) > 120]


def test_sentences_begin_with_their_subject():
    """Such as "What a plan would gain, a graph gives." and "Those in memory one lane stores."; say what they are."""
    files = DOCUMENTS + [p for p in FILES if is_text(p)]
    assert len(files) > 500
    assert not [(name(p), sentence) for p in files for text in paragraphs(p) for sentence in openings(text)]
