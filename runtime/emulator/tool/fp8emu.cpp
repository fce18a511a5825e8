// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8emu run PROGRAM …: the program, with the emulator for its CUDA driver and runtime. The program is found
// as a shell finds it; the emulator, beside this tool.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

namespace {

const char *const kHelp =
    "usage: fp8emu run [options] PROGRAM [ARGUMENTS]\n"
    "\n"
    "Runs a program with the emulator for its CUDA driver and its CUDA runtime (libcudart.so), and sums up\n"
    "at its end: kernels, launches, findings, the slowest kernels.\n"
    "\n"
    "  --chip=LIST     the devices, separated by commas: sm_89, sm_90a, sm_100a, sm_120a\n"
    "  --checks=WHICH  0, memory (all but memory order), 1 (all; the default), strict\n"
    "  --faults=WHAT   stop (the default), or report: go on, and end with status 1\n"
    "  --seed=N        the order of warps, blocks and completions\n"
    "  --threads=N     threads of the host that run blocks\n"
    "  --report=FILE   faults are appended to the file\n"
    "  --profile=FILE  counts of all launches, as JSON\n"
    "  --preload       for programs whose libraries look for CUDA in folders of their own, as PyTorch's do\n";

struct Option {
  const char *name, *variable;
};
const Option kOptions[] = {{"--chip=", "FP8EMU_CHIP"},       {"--checks=", "FP8EMU_CHECKS"},
                           {"--faults=", "FP8EMU_FAULTS"},   {"--seed=", "FP8EMU_SEED"},
                           {"--threads=", "FP8EMU_THREADS"}, {"--report=", "FP8EMU_REPORT"},
                           {"--profile=", "FP8EMU_PROFILE"}};

/// Sets a variable that lists names to these, followed by those that it has.
void prepend(const char *variable, const std::string &names) {
  const char *others = std::getenv(variable);
  setenv(variable, (others && *others ? names + ":" + others : names).c_str(), 1);
}

/// Sets the variable that an option stands for; false where there is no such option.
bool take(const char *argument) {
  if (std::strcmp(argument, "--preload") == 0) {
    // The program finds them by LD_LIBRARY_PATH.
    prepend("LD_PRELOAD", "libcuda.so.1:libcudart.so.13:libcudart.so.12");
    return true;
  }
  for (const Option &option : kOptions) {
    const size_t length = std::strlen(option.name);
    if (std::strncmp(argument, option.name, length) == 0)
      return setenv(option.variable, argument + length, 1) == 0;
  }
  return false;
}

/// The folder of this program, ending with a slash.
std::string ownFolder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string own(path, length > 0 ? size_t(length) : 0);
  return own.substr(0, own.rfind('/') + 1);
}

/// The folder with libcuda.so.1; empty where there is none.
std::string libraryFolder() {
  for (const char *place : {"../lib/fp8emu", "../" FP8EMU_LIBDIR "/fp8emu", "../fp8emu"})
    if (const std::string folder = ownFolder() + place; access((folder + "/libcuda.so.1").c_str(), R_OK) == 0)
      return folder;
  return "";
}

int run(char **arguments) {
  for (; *arguments && **arguments == '-'; ++arguments)
    if (!take(*arguments))
      return std::fprintf(stderr, "fp8emu: there is no option %s (see fp8emu --help)\n", *arguments), 2;
  if (!*arguments)
    return std::fputs("fp8emu: a program is missing (see fp8emu --help)\n", stderr), 2;
  const std::string folder = libraryFolder();
  if (folder.empty())
    return std::fprintf(stderr, "fp8emu: there is no lib/fp8emu/libcuda.so.1 beside %s\n",
                        ownFolder().c_str()),
           2;
  prepend("LD_LIBRARY_PATH", folder);
  // Where Triton looks for the driver to link with.
  setenv("TRITON_LIBCUDA_PATH", folder.c_str(), 1);
  setenv("FP8EMU_SUMMARY", "1", 1);
  execvp(*arguments, arguments);
  std::fprintf(stderr, "fp8emu: %s cannot be run: %s\n", *arguments, std::strerror(errno));
  return 127;
}

} // namespace

int main(int count, char **arguments) {
  if (count > 1 && std::strcmp(arguments[1], "run") == 0)
    return run(arguments + 2);
  const bool asked =
      count > 1 && (!std::strcmp(arguments[1], "--help") || !std::strcmp(arguments[1], "help"));
  std::fputs(kHelp, asked ? stdout : stderr);
  return asked ? 0 : 2;
}
