# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports: records, text, JSON and the table of notebooks."""

import json
from html.parser import HTMLParser

import fp8
import pytest
from fp8 import Report

from small_programs import PAIR, compile_product, product


def record(**fields):
    return {"site": "h0/fc", "role": "fprop", "batch": 1, "m": 4, "n": 8, "k": 16, "decision": "fp8", "reason": "", "recipe": "delayed",
            "formats": ["E4M3", "E4M3"], "code": "code", "location": 'h0/fc (/home/me/model.py:5:50)', **fields}  # fmt: skip


REPORT = Report({"sites": [
    record(), record(role="dgrad", formats=["E5M2", "E4M3"]), record(role="wgrad", decision="high", reason="kept <by> hand", formats=["bf16", "bf16"]),
    record(site="qk", batch=12, m=None, decision="high", reason="no weight operand", formats=["bf16", "bf16"], role="other", location="unknown"),
]})  # fmt: skip


class Table(HTMLParser):
    """The cells of each row, and the tags that occur."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.styles = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.styles.append(dict(attributes)["style"])

    def handle_data(self, data):
        if self.rows:
            self.rows[-1][-1] += data


def test_the_table_of_a_notebook():
    table = Table(REPORT._repr_html_())
    assert table.rows == [
        ["site", "m × n × k", "fprop", "dgrad", "wgrad", "other", "reason", "location"],
        ["h0/fc", "4 × 8 × 16", "E4M3", "E5M2 × E4M3", "bf16", "", "kept <by> hand", "model.py:5"],
        ["qk", "12 of ? × 8 × 16", "", "", "", "bf16", "no weight operand", ""],
    ]
    # No script and nothing from elsewhere: shown in notebooks that are not trusted too.
    assert table.tags == {"p", "table", "thead", "tbody", "tr", "th", "td"}
    coloured = [style.rpartition("background:")[2][:7] for style in table.styles if "background" in style]
    assert coloured == ["#c8e6c9", "#c8e6c9", "#ffe0b2", "#ffe0b2"]


def test_lines_of_a_report():
    assert repr(REPORT) == "<fp8.Report: 4 products, 2 in FP8, 2 kept>"
    assert [site.role for site in REPORT.fp8] == ["fprop", "dgrad"]
    assert [site.reason for site in REPORT.kept] == ["kept <by> hand", "no weight operand"]
    assert REPORT.sites[0].place == fp8.Location("/home/me/model.py", 5, 50)
    assert REPORT.sites[3].place is None


@pytest.mark.parametrize("name", ["h0/fc", "transpose(jvp(h0/fc))/dot", ""])
@pytest.mark.parametrize("file", ["model.py", "/home/me/my folder (x)/mod el.py", "/home/me/a (b)", "a:1:2/b.py"])
def test_files_may_have_blanks_and_parentheses(name, file):
    report = Report({"sites": [record(location=f"{name} ({file}:3:58)" if name else f"{file}:3:58")]})
    assert report.sites[0].place == fp8.Location(file, 3, 58)
    assert Table(report._repr_html_()).rows[1][-1] == f"{file.rpartition('/')[2]}:3"
    assert Report({"sites": [record(location=name)]}).sites[0].place is None


def test_a_report_of_the_compiler():
    library = compile_product(amax_history_len=16)
    assert "matmul" not in str(library.report) and "1 contractions: 1 in FP8" in str(library.report)
    assert json.loads(library.report.to_json())["sites"][0]["site"] == "w"
    # Scales of two columns and their histories.
    assert library.report.memory["state_bytes"] == 4 * (2 + 2 * 16)
    assert library.report.options["amax_history_len"] == 16
    assert [row[0] for row in Table(library.report._repr_html_()).rows] == ["site", "w"]


def test_entries_of_a_pair_are_told_apart():
    report = fp8.compile(PAIR, pair=("forward", "backward", 1), recipe="current").report
    assert {(site.entry, site.role) for site in report.sites} == {("forward", "fprop"), ("backward", "wgrad")}
    assert [row[0] for row in Table(report._repr_html_()).rows] == ["site", "forward: w", "backward: w"]


def test_places_are_the_users():
    text = product(locations=' loc("jit(step)/h0/fc/dot_general"(callsite("f"("/home/me/model.py":5:50) at "/home/me/train.py":9:1)))')
    (site,) = fp8.compile(text, recipe="current").report.sites
    assert (site.site, site.place) == ("h0/fc", fp8.Location("/home/me/model.py", 5, 50))
