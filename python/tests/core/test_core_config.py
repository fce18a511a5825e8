# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.config, as a user sets it."""

import pathlib

import pytest
from fp8._config import Config


def test_folders_are_given_as_text_and_names_are_checked(tmp_path, monkeypatch):
    settings = Config.from_environment({})
    settings.cache_dir = str(tmp_path / "cache")
    settings.tool_dir = "~/tools"
    monkeypatch.chdir(tmp_path)
    assert settings.cache_dir == tmp_path / "cache" and settings.tool_dir == pathlib.Path("~/tools").expanduser()
    settings.cache_dir = "near"
    assert settings.cache_dir == tmp_path / "near"
    settings.tool_dir = None
    with pytest.raises(AttributeError, match="fp8.config has no cachedir: its settings are cache_dir, tool_dir, compile_timeout, verbose"):
        settings.cachedir = "/data"
