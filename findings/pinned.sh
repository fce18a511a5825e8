#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Sourced by the scripts that are programs in Python.

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# install PACKAGE==VERSION…: an environment of its own in $folder, and its Python in $python, which finds the modules of
# this folder. Other words are pip's.
install() {
  "${PYTHON:-python3}" -m venv "$folder/venv" || { echo "python3 has no venv (Debian: python3-venv)"; exit 77; }
  "$folder/venv/bin/pip" install --quiet "$@"
  python=$folder/venv/bin/python PYTHONPATH=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  export python PYTHONPATH
}
