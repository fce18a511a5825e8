#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The steps that tools/quickstart and tools/check share: packages, configuration, build and
# the Python environment. A step whose work is done already does nothing, so that a second
# run needs no network. This file is sourced, never run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BUILD=build
# shellcheck disable=SC2034 # read by the scripts that source this file
BUILD_PACKAGES=(cmake ninja-build ccache clang-22 lld-22 liblld-22-dev libomp-22-dev llvm-22-dev llvm-22-tools
  libmlir-22-dev mlir-22-tools libstdc++-12-dev libzstd-dev zlib1g-dev libxml2-dev libedit-dev
  nlohmann-json3-dev libgtest-dev python3 python3-venv)
# shellcheck disable=SC2034
LINT_PACKAGES=(clang-format-22 clang-tidy-22 shellcheck)
# For tests of several ranks: MPI, whose declarations are compared too.
# shellcheck disable=SC2034
RANK_PACKAGES=(libopenmpi-dev openmpi-bin)
# shellcheck disable=SC2034
FUZZ_PACKAGES=(clang-22 libclang-rt-22-dev lld-22 cmake ninja-build nlohmann-json3-dev)
# shellcheck disable=SC2034
EXAMPLE_PACKAGES=(gnuplot-nox jargon-text)
# pytest-xdist runs a file of tests on each core. For the emulator's tests: tinygrad is a program that writes PTX, the wheel
# of CUDA's runtime has cuda.h.
PYTHON_PACKAGES=(pytest pytest-xdist numpy safetensors ml_dtypes tinygrad==0.14.0 nvidia-cuda-runtime==13.* ruff==0.17.* mypy==2.*)

say() { printf '\033[1m== %s\033[0m\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# install_packages NAME…: from Debian, those that are missing. The example's text counts as
# documentation, which small Debian images leave out unless told otherwise.
install_packages() {
  local missing=() package sudo=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "Installing ${missing[*]}"
  if ((EUID)); then
    sudo=(sudo)
    command -v sudo >/dev/null || die "install these packages as root, then run me again: ${missing[*]}"
  fi
  if ! { "${sudo[@]}" apt-get -qq update &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
      -o Dpkg::Use-Pty=0 -o Dpkg::Options::="--path-include=/usr/share/doc/jargon-text/*" install "${missing[@]}" >/dev/null; }; then
    die "apt-get could not install ${missing[*]}: this needs Debian 12 with its security updates, and the network once"
  fi
}

# build_targets TARGET…: configures with the release preset and builds.
build_targets() {
  say "Building in $BUILD/"
  mkdir -p "$BUILD"
  cmake --preset release >"$BUILD/configure.log" 2>&1 ||
    die "configuring failed; the reason is at the end of $BUILD/configure.log"
  NINJA_STATUS='[%f/%t, %es] ' ninja -C "$BUILD" "$@" || die "the build failed; the first error above says where"
}

# make_venv: creates a Python environment in the build folder, once, with packages from PyPI, where
# they are newer than in Debian.
make_venv() {
  local venv="$BUILD/venv"
  [[ "$(cat "$venv/packages" 2>/dev/null)" == "${PYTHON_PACKAGES[*]}" ]] && return 0
  say "Installing ${PYTHON_PACKAGES[*]} in $venv"
  python3 -m venv --clear "$venv" ||
    die "python3 cannot make a virtual environment: install python3-venv for the python3 on your PATH"
  "$venv/bin/pip" install -q --disable-pip-version-check "${PYTHON_PACKAGES[@]}" ||
    die "pip could not install ${PYTHON_PACKAGES[*]} in $venv: the network is needed once"
  echo "${PYTHON_PACKAGES[*]}" >"$venv/packages"
}

# find_framework_environment NAME: prints the folder of the Python environment for jax or torch: outside of the
# checkout, so that a fresh clone finds it, and named by what is installed there.
find_framework_environment() {
  local hash
  hash=$({ python3 --version && cat "python/requirements/$1"*; } | sha256sum | head -c 12)
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/fp8-mlir/python/$1-$hash"
}

# has_framework_environment NAME: whether it is there already.
has_framework_environment() { [[ -f "$(find_framework_environment "$1")/complete" ]]; }

# make_framework_environment NAME: makes it, once; another process that makes it is waited for.
make_framework_environment() {
  local name=$1 folder
  folder=$(find_framework_environment "$name")
  mkdir -p "$(dirname "$folder")"
  (
    flock 9
    has_framework_environment "$name" && exit 0
    say "Installing python/requirements/$name.txt in $folder"
    python3 -m venv --clear "$folder" &&
      { [[ "$name" != torch ]] || "$folder/bin/python" python/requirements/torch_without_cuda.py; } &&
      "$folder/bin/pip" install -q --disable-pip-version-check -r "python/requirements/$name.txt" &&
      touch "$folder/complete"
  ) 9>"$folder.lock" || die "could not make the environment for $name: the network is needed once"
}
