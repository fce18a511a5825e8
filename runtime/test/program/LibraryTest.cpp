// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading compiled libraries: their contents, and files that are no libraries.

#include "TestSupport.h"

#include <cstdlib>
#include <fstream>

using namespace fp8rt_test;

namespace {

class LibraryTest : public WithFolder {
protected:
  void expectError(const std::string &path, fp8rt_status status, const std::string &part) {
    fp8rt_library *out = nullptr;
    EXPECT_FP8RT_ERROR(fp8rt_library_load(path.c_str(), &out), status, part);
    EXPECT_EQ(std::string(fp8rt_last_error()).find(path + ": "), 0u);
    EXPECT_EQ(out, nullptr);
  }
};

TEST_F(LibraryTest, SaysWhatItsEntriesTake) {
  Library library = loadFixture();
  ASSERT_TRUE(library);
  EXPECT_EQ(fp8rt_library_num_entries(library.get()), 6u);
  EXPECT_STREQ(fp8rt_library_entry_name(library.get(), 1), "evaluate");
  EXPECT_EQ(fp8rt_library_entry_name(library.get(), 6), nullptr);
  EXPECT_EQ(std::string(fp8rt_library_manifest(library.get())).find("{\"vers"), 0u);

  uint32_t numArguments = 0, numResults = 0;
  ASSERT_FP8RT(fp8rt_library_counts(library.get(), "main", &numArguments, &numResults));
  EXPECT_EQ(numArguments, 6u);
  EXPECT_EQ(numResults, 7u);
  fp8rt_value value;
  ASSERT_FP8RT(fp8rt_library_argument(library.get(), "main", 0, &value));
  EXPECT_STREQ(value.name, "w");
  EXPECT_STREQ(value.type, "f32");
  EXPECT_EQ(value.ndim, 2);
  EXPECT_EQ(value.shape[1], 3);
  EXPECT_EQ(value.kind, FP8RT_KIND_USER);
  EXPECT_EQ(value.carry, 0);
  EXPECT_EQ(value.written, 1);
  ASSERT_FP8RT(fp8rt_library_result(library.get(), "main", 4, &value));
  EXPECT_EQ(value.shape[0], -1);
  EXPECT_EQ(value.alias, -1);
  ASSERT_FP8RT(fp8rt_library_result(library.get(), "main", 6, &value));
  EXPECT_EQ(value.kind, FP8RT_KIND_STATE);
  EXPECT_EQ(value.alias, 5);
  EXPECT_FP8RT_ERROR(fp8rt_library_result(library.get(), "main", 7, &value), FP8RT_INVALID_ARGUMENT,
                     "out of range");
  EXPECT_FP8RT_ERROR(fp8rt_library_argument(library.get(), "mian", 0, &value), FP8RT_NOT_FOUND,
                     "no entry 'mian'; it has main, evaluate, forward");
}

TEST_F(LibraryTest, FilesThatAreNoLibrary) {
  expectError(path("none"), FP8RT_NOT_FOUND, "No such file");
  expectError(folder, FP8RT_IO, "directory");
  std::ofstream(path("empty"));
  expectError(path("empty"), FP8RT_CORRUPT, "not a shared library");
  std::ofstream(path("text")) << std::string(1000, 'x');
  expectError(path("text"), FP8RT_CORRUPT, "not a shared library");
  expectError("/proc/self/exe", FP8RT_CORRUPT, "");
}

TEST_F(LibraryTest, TruncationAnywhereIsFound) {
  std::ifstream file(FIXTURE, std::ios::binary);
  std::string whole(std::istreambuf_iterator<char>(file), {});
  for (size_t part = 0; part < 64; ++part) {
    std::string name = path("lib" + std::to_string(part));
    std::ofstream(name) << whole.substr(0, whole.size() * part / 64);
    fp8rt_library *out = nullptr;
    EXPECT_FP8RT_ERROR(fp8rt_library_load(name.c_str(), &out), FP8RT_CORRUPT,
                       part ? "" : "not a shared library");
  }
}

TEST_F(LibraryTest, ALibraryOfAnotherKind) {
  expectError("/lib/x86_64-linux-gnu/libm.so.6", FP8RT_CORRUPT, "does not export fp8_manifest");
}

TEST_F(LibraryTest, DeviceCodeIsChecked) {
  auto manifest = [](const char *call) {
    std::string text = R"({"version": 1, "call": )" + std::string(call) +
                       R"(, "entries": [{"name": "main", "arguments": [], "results": []}]})";
    setenv("FP8RT_TEST_MANIFEST", text.c_str(), /*overwrite=*/1);
  };
  manifest("2");
  setenv("FP8RT_TEST_CODE_VERSION", "3", 1);
  expectError(ANY_DEVICE_CODE, FP8RT_UNSUPPORTED,
              "device code is of version 3, this runtime knows version 2");
  setenv("FP8RT_TEST_CODE_VERSION", "1", 1);
  setenv("FP8RT_TEST_NO_IMAGES", "1", 1);
  expectError(ANY_DEVICE_CODE, FP8RT_CORRUPT, "its device code is incomplete");
  unsetenv("FP8RT_TEST_NO_IMAGES");
  manifest("1");
  expectError(ANY_DEVICE_CODE, FP8RT_CORRUPT, "has device code, but takes calls of version 1");
}

TEST_F(LibraryTest, APathWithoutASlashIsAFileOfTheWorkingDirectory) {
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::copy_file(FIXTURE, path("libm.so.6"));
  std::filesystem::current_path(folder);
  fp8rt_library *out = nullptr;
  EXPECT_EQ(fp8rt_library_load("libm.so.6", &out), FP8RT_OK) << fp8rt_last_error();
  fp8rt_library_destroy(out);
  std::filesystem::current_path(before);
}

TEST_F(LibraryTest, NullIsRefused) {
  fp8rt_library *out = nullptr;
  EXPECT_FP8RT_ERROR(fp8rt_library_load(nullptr, &out), FP8RT_INVALID_ARGUMENT, "path is null");
  EXPECT_FP8RT_ERROR(fp8rt_library_load(FIXTURE, nullptr), FP8RT_INVALID_ARGUMENT, "out_library is null");
  EXPECT_EQ(fp8rt_library_num_entries(nullptr), 0u);
  EXPECT_EQ(fp8rt_library_manifest(nullptr), nullptr);
  fp8rt_library_destroy(nullptr);
}

} // namespace
