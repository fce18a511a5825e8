// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Workspaces of calls on the CPU. They stay for the next call: the system clears each page of new memory,
// which takes a fifth of a step whose workspace has some hundred MB.

#ifndef FP8_JAX_WORKSPACE_H
#define FP8_JAX_WORKSPACE_H

#include <cstdint>

namespace fp8_jax {

/// Memory for one call. All programs of the process share what is free: there are as many blocks as calls
/// that ran at the same time, and each is as large as the largest workspace it has served. Blocks below 1 MiB
/// are malloc's.
class Workspace {
public:
  /// Takes a block of at least `bytes` bytes, at a page's beginning; `data()` is null where the system has
  /// none, or for 0 bytes.
  explicit Workspace(uint64_t bytes);
  ~Workspace();
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;

  void *data() const { return block; }

private:
  void *block = nullptr;
  uint64_t size = 0;
};

/// A program whose calls need `bytes` bytes. Free blocks stay while one exists that needs so much.
class WorkspaceUser {
public:
  explicit WorkspaceUser(uint64_t bytes);
  ~WorkspaceUser();
  WorkspaceUser(const WorkspaceUser &) = delete;
  WorkspaceUser &operator=(const WorkspaceUser &) = delete;

private:
  uint64_t bytes;
};

} // namespace fp8_jax

#endif // FP8_JAX_WORKSPACE_H
