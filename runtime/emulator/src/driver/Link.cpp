// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: linking PTX. The result is an image of ptx/Link.h instead of a cubin;
// cuModuleLoadData and cuLibraryLoadData take it. The image has no options: a limit on
// registers has to be given when it is loaded.

#include "Driver.h"
#include "image/Image.h"

#include "ptx/Link.h"
#include "ptx/Parser.h"

using namespace fp8emu;
using namespace fp8emu::driver;

struct fp8emu::driver::LinkState {
  JitOptions options;
  std::vector<ptx::Unit> units;
  std::string image;
};

namespace {
/// CUjitInputType: those that hold PTX.
enum InputType { OfCubin = 0, OfPtx = 1, OfFatBinary = 2 };

/// Adds a unit that parses; an error is written to the log of this call or, without
/// one, of the link.
void addUnit(Driver &driver, LinkState &state, ptx::Unit unit, JitOptions options) {
  if (!options.buffer)
    options = state.options;
  try {
    ptx::parse(unit.text);
  } catch (const PtxError &error) {
    options.log(unit.name + ":" + error.what());
    driver.report(unit.name + ", line " + error.what());
    fail(CUDA_ERROR_INVALID_PTX);
  }
  state.units.push_back(std::move(unit));
}

/// Adds the PTX of an input.
void add(Driver &driver, LinkState &state, int type, const std::string &bytes, const std::string &name,
         const JitOptions &options) {
  if (type != OfCubin && type != OfPtx && type != OfFatBinary) {
    const std::string message = name + " is an object file, a library or NVVM's: the emulator links PTX, and "
                                       "cubins and fat binaries that carry it";
    (options.buffer ? options : state.options).log(message);
    driver.report(message);
    fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
  }
  const Image image = readImage(driver, bytes.c_str(), bytes.size(), options.buffer ? options : state.options,
                                &driver.current());
  addUnit(driver, state, {name, image.ptx}, options);
}

std::string nameOf(const LinkState &state, const char *given) {
  return given && *given ? given : "input " + std::to_string(state.units.size() + 1);
}
} // namespace

FP8EMU_API CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *state) {
  return enter([=](Driver &driver) {
    require(state && (count == 0 || (options && values)));
    Context &context = driver.current();
    auto own = std::make_unique<LinkState>();
    own->options = readJitOptions(count, options, values);
    *state = driver.track(std::move(own), &context);
  });
}

FP8EMU_API CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t bytes, const char *name,
                                     unsigned count, int *options, void **values) {
  return enter([=](Driver &driver) {
    require(data && (count == 0 || (options && values)));
    LinkState &own = driver.check(state);
    add(driver, own, type, std::string(static_cast<const char *>(data), bytes), nameOf(own, name),
        readJitOptions(count, options, values));
  });
}

FP8EMU_API CUresult cuLinkAddFile_v2(CUlinkState state, int type, const char *path, unsigned count,
                                     int *options, void **values) {
  return enter([=](Driver &driver) {
    require(path && (count == 0 || (options && values)));
    LinkState &own = driver.check(state);
    add(driver, own, type, readFile(path), path, readJitOptions(count, options, values));
  });
}

FP8EMU_API CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes) {
  return enter([=](Driver &driver) {
    LinkState &own = driver.check(state);
    require(image && !own.units.empty());
    own.image = ptx::join(own.units);
    try {
      // Symbols that are missing or defined twice show when code is made of the image.
      Machine scratch;
      scratch.load(Source(own.image));
    } catch (const PtxError &error) {
      own.options.log(error.what());
      driver.report(std::string("linked PTX line ") + error.what());
      fail(CUDA_ERROR_INVALID_PTX);
    }
    *image = own.image.data();
    if (bytes)
      *bytes = own.image.size() + 1;
  });
}

FP8EMU_API CUresult cuLinkDestroy(CUlinkState state) {
  return enter([=](Driver &driver) {
    driver.check(state);
    driver.drop(state);
  });
}
