// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Safetensors files: every element type there and back, files made by hand, and
// every way in which a file can be wrong.

#include "TestSupport.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fp8rt_test;

namespace {

class SafetensorsTest : public WithFolder {
protected:
  /// A file with that header and data; returns its path.
  std::string file(const std::string &header, const std::string &data) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; ++i)
      bytes[i] = static_cast<char>(uint64_t(header.size()) >> (8 * i));
    return rawFile(bytes + header + data);
  }

  std::string rawFile(const std::string &bytes) {
    std::ofstream(path("in")) << bytes;
    return path("in");
  }

  void expectError(const std::string &file, fp8rt_status status, const std::string &part) {
    fp8rt_tensors *out = nullptr;
    EXPECT_FP8RT_ERROR(fp8rt_tensors_read(file.c_str(), &out), status, part);
    EXPECT_EQ(std::string(fp8rt_last_error()).find(file), 0u) << "the error starts with the path";
    EXPECT_EQ(out, nullptr);
  }

  void expectCorrupt(const std::string &file, const std::string &part) {
    expectError(file, FP8RT_CORRUPT, part);
  }
};

std::string contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct TypeCase {
  const char *name;
  DLDataType type;
};

const TypeCase kAllTypes[] = {
    {"BOOL", {kDLBool, 8, 1}},
    {"I8", {kDLInt, 8, 1}},
    {"I16", {kDLInt, 16, 1}},
    {"I32", {kDLInt, 32, 1}},
    {"I64", {kDLInt, 64, 1}},
    {"U8", {kDLUInt, 8, 1}},
    {"U16", {kDLUInt, 16, 1}},
    {"U32", {kDLUInt, 32, 1}},
    {"U64", {kDLUInt, 64, 1}},
    {"F16", {kDLFloat, 16, 1}},
    {"BF16", {kDLBfloat, 16, 1}},
    {"F32", {kDLFloat, 32, 1}},
    {"F64", {kDLFloat, 64, 1}},
    {"F8_E4M3", {FP8RT_DTYPE_CODE_F8E4M3FN, 8, 1}},
    {"F8_E5M2", {FP8RT_DTYPE_CODE_F8E5M2, 8, 1}},
    {"F8_E8M0", {FP8RT_DTYPE_CODE_F8E8M0FNU, 8, 1}},
};

/// Bytes that are all different, or 0 and 1 where those are the only ones.
std::vector<uint8_t> pattern(size_t count, bool isBool) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<uint8_t>(isBool ? i % 2 : 0xA5 + 7 * i);
  return bytes;
}

TEST_F(SafetensorsTest, EveryTypeAndRankComesBack) {
  const std::vector<std::vector<int64_t>> shapes = {{}, {5}, {2, 3}, {3, 0, 2}};
  std::vector<std::unique_ptr<Literal<uint8_t>>> literals;
  Tensors written = newTensors();
  for (const TypeCase &c : kAllTypes)
    for (const std::vector<int64_t> &shape : shapes) {
      size_t count = c.type.bits / 8;
      for (int64_t dim : shape)
        count *= static_cast<size_t>(dim);
      literals.push_back(
          std::make_unique<Literal<uint8_t>>(c.type, shape, pattern(count, c.type.code == kDLBool)));
      std::string name = c.name + std::to_string(shape.size());
      ASSERT_FP8RT(fp8rt_tensors_add(written.get(), name.c_str(), &literals.back()->view));
    }
  ASSERT_FP8RT(fp8rt_tensors_set_metadata(written.get(), "κ", "\"ü\"\n"));
  ASSERT_FP8RT(fp8rt_tensors_write(written.get(), path("f").c_str()));

  Tensors read = readTensors(path("f"));
  ASSERT_EQ(fp8rt_tensors_count(read.get()), literals.size());
  EXPECT_STREQ(fp8rt_tensors_metadata(read.get(), "κ"), "\"ü\"\n");
  size_t next = 0;
  for (const TypeCase &c : kAllTypes)
    for (const std::vector<int64_t> &shape : shapes) {
      std::string name = c.name + std::to_string(shape.size());
      const Literal<uint8_t> &wanted = *literals[next++];
      const DLTensor *got = fp8rt_tensors_find(read.get(), name.c_str());
      ASSERT_NE(got, nullptr) << name;
      EXPECT_EQ(std::memcmp(&got->dtype, &c.type, sizeof(DLDataType)), 0);
      EXPECT_EQ(std::vector<int64_t>(got->shape, got->shape + got->ndim), shape);
      ASSERT_EQ(got->data == nullptr, wanted.data.empty()) << name;
      const uint8_t *data = static_cast<const uint8_t *>(got->data);
      EXPECT_EQ(std::vector<uint8_t>(data, data + wanted.data.size()), wanted.data) << name;
    }
}

TEST_F(SafetensorsTest, WritesTheFormatByteForByte) {
  Literal<float> a(kF32, {2}, {1.0f, -2.0f});
  Literal<uint16_t> b(kBF16, {}, {0x3f80});
  Tensors tensors = newTensors();
  ASSERT_FP8RT(fp8rt_tensors_add(tensors.get(), "a", &b.view));
  ASSERT_FP8RT(fp8rt_tensors_add(tensors.get(), "b", &a.view));
  ASSERT_FP8RT(fp8rt_tensors_write(tensors.get(), path("f").c_str()));
  // The wider elements of b come first, so that they are aligned.
  std::string header = R"({"a":{"data_offsets":[8,10],"dtype":"BF16","shape":[]},)"
                       R"("b":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string data("\0\0\x80\x3f\0\0\0\xc0\x80\x3f", 10);
  EXPECT_EQ(contents(path("f")), contents(file(header, data)));
}

TEST_F(SafetensorsTest, ReadsValuesAndMetadata) {
  std::string data("\1\0\0\0\0\0\xc0\x7f", 8);
  Tensors read = readTensors(file(R"({"__metadata__":{"k":"v"},"y":{"dtype":"F32","shape":[1],)"
                                  R"("data_offsets":[4,8]},"x":{"dtype":"I32","shape":[],)"
                                  R"("data_offsets":[0,4]}})",
                                  data));
  ASSERT_TRUE(read);
  EXPECT_EQ(fp8rt_tensors_count(read.get()), 2u);
  EXPECT_STREQ(fp8rt_tensors_name(read.get(), 0), "x");
  EXPECT_EQ(fp8rt_tensors_name(read.get(), 2), nullptr);
  EXPECT_EQ(values<int32_t>(fp8rt_tensors_find(read.get(), "x")), std::vector<int32_t>{1});
  EXPECT_TRUE(std::isnan(values<float>(fp8rt_tensors_find(read.get(), "y"))[0]));
  EXPECT_EQ(fp8rt_tensors_find(read.get(), "z"), nullptr);
  EXPECT_STREQ(fp8rt_tensors_metadata(read.get(), "k"), "v");
  EXPECT_EQ(fp8rt_tensors_metadata(read.get(), "l"), nullptr);
}

TEST_F(SafetensorsTest, MissingAndUnreadableFiles) {
  expectError(path("none"), FP8RT_NOT_FOUND, "No such file");
  expectError(folder, FP8RT_IO, "not a regular file");
}

TEST_F(SafetensorsTest, TruncationAnywhereIsFound) {
  std::string header = R"({"x":{"dtype":"I32","shape":[2],)"
                       R"("data_offsets":[0,8]}})";
  std::string whole = contents(file(header, "12345678"));
  for (size_t length = 0; length < whole.size(); ++length)
    expectCorrupt(rawFile(whole.substr(0, length)), length < 8 ? "before its header"
                                                    : length < 8 + header.size()
                                                        ? "within its header"
                                                        : "beyond the end of the file");
  expectCorrupt(rawFile(whole + "9"), "bytes behind its last tensor");
}

TEST_F(SafetensorsTest, MalformedHeaders) {
  expectCorrupt(rawFile("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "header length");
  expectCorrupt(file("[]", ""), "not a JSON object");
  expectCorrupt(file("{", ""), "not a JSON object");
  expectCorrupt(file(std::string(100000, '['), ""), "not a JSON object");
  expectCorrupt(file(R"({"x":1})", ""), "not described by a JSON object");
  expectCorrupt(file(R"({"__metadata__":[]})", ""), "metadata");
  expectCorrupt(file(R"({"__metadata__":{"a":1}})", ""), "metadata 'a'");
  expectCorrupt(file("{\"a\xff\":{}}", ""), "not a JSON object");
}

/// A header of one tensor 'x' of 4 bytes of data.
std::string tensorX(const std::string &dtype, const std::string &shape, const std::string &offsets) {
  return R"({"x":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

TEST_F(SafetensorsTest, MalformedTensors) {
  auto expect = [&](const char *dtype, const char *shape, const char *offsets, const char *part) {
    expectCorrupt(file(tensorX(dtype, shape, offsets), "1234"), part);
  };
  expect("7", "[1]", "[0,4]", "tensor 'x'");
  expect("\"F32\"", "[-1]", "[0,4]", "not a natural number");
  expect("\"F32\"", "[1.0]", "[0,4]", "not a natural number");
  expect("\"F32\"", "1", "[0,4]", "not a list");
  expect("\"F32\"", "[1]", "[0]", "not a range");
  expect("\"F32\"", "[1]", "[4,0]", "not a range");
  expect("\"F32\"", "[1]", "[0,8]", "beyond the end");
  expect("\"F32\"", "[2]", "[0,4]", "do not fit its shape");
  expect("\"F32\"", "[4611686018427387905]", "[0,4]", "do not fit its shape");
  expect("\"F32\"", "[4294967296,4294967297]", "[0,4]", "do not fit its shape");
  expect("\"BOOL\"", "[4]", "[0,4]", "neither 0 nor 1");
  expectCorrupt(file(R"({"x":{"shape":[1]}})", ""), "has no dtype");
}

TEST_F(SafetensorsTest, TensorsOfUnknownTypesAreToldApart) {
  const std::string header = R"({"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"F8_E4M3FNUZ","shape":[2],"data_offsets":[4,6]},)"
                             R"("c":{"dtype":"C64","shape":[0],"data_offsets":[6,6]},)"
                             R"("x":{"dtype":"U8","shape":[1],"data_offsets":[6,7]}})";
  Tensors read = readTensors(file(header, "1234567"));
  ASSERT_EQ(fp8rt_tensors_count(read.get()), 1u);
  EXPECT_STREQ(fp8rt_tensors_name(read.get(), 0), "x");
  EXPECT_EQ(*static_cast<const char *>(fp8rt_tensors_find(read.get(), "x")->data), '7');
  EXPECT_EQ(fp8rt_tensors_find(read.get(), "a"), nullptr);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"a", "F4"}, {"b", "F8_E4M3FNUZ"}, {"c", "C64"}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const char *dtype = nullptr;
    EXPECT_STREQ(fp8rt_tensors_unsupported(read.get(), i, &dtype), expected[i].first.c_str());
    EXPECT_STREQ(dtype, expected[i].second.c_str());
  }
  EXPECT_EQ(fp8rt_tensors_unsupported(read.get(), expected.size(), nullptr), nullptr);
  EXPECT_EQ(fp8rt_tensors_unsupported(nullptr, 0, nullptr), nullptr);
  EXPECT_FP8RT_ERROR(fp8rt_tensors_write(read.get(), path("out").c_str()), FP8RT_UNSUPPORTED,
                     "tensor 'a': its dtype 'F4' is not supported");
  expectCorrupt(file(tensorX("\"F4\"", "[8]", "[0,8]"), "1234"), "beyond the end");
  expectCorrupt(file(tensorX("\"F4\"", "[8]", "[0,3]"), "1234"), "bytes behind");
}

TEST_F(SafetensorsTest, TensorsMustCoverTheDataOnce) {
  auto two = [](const char *first, const char *second) {
    return std::string(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)") + first +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}";
  };
  expectCorrupt(file(two("[0,2]", "[1,3]"), "123"), "overlap");
  expectCorrupt(file(two("[0,2]", "[0,2]"), "12"), "overlap");
  expectCorrupt(file(two("[0,2]", "[3,5]"), "12345"), "unused");
  std::string twice = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  expectCorrupt(file(twice, "12"), "two tensors 'a'");
}

TEST_F(SafetensorsTest, AddChecksWhatItIsGiven) {
  Tensors tensors = newTensors();
  Literal<float> good(kF32, {2, 2}, {1, 2, 3, 4});
  auto add = [&](const char *name, const DLTensor &tensor) {
    return fp8rt_tensors_add(tensors.get(), name, &tensor);
  };
  ASSERT_FP8RT(add("a", good.view));
  EXPECT_FP8RT_ERROR(add("a", good.view), FP8RT_INVALID_ARGUMENT, "two tensors");
  EXPECT_FP8RT_ERROR(add("__metadata__", good.view), FP8RT_INVALID_ARGUMENT, "reserved");
  DLTensor bad = good.view;
  int64_t transposed[] = {1, 2};
  bad.strides = transposed;
  EXPECT_FP8RT_ERROR(add("b", bad), FP8RT_INVALID_ARGUMENT, "contiguous");
  bad = good.view;
  bad.data = nullptr;
  EXPECT_FP8RT_ERROR(add("b", bad), FP8RT_INVALID_ARGUMENT, "null");
  bad = good.view;
  bad.device.device_type = kDLCUDA;
  EXPECT_FP8RT_ERROR(add("b", bad), FP8RT_INVALID_ARGUMENT, "host memory");
  bad = good.view;
  bad.dtype.bits = 24;
  EXPECT_FP8RT_ERROR(add("b", bad), FP8RT_UNSUPPORTED, "24 bits");
  EXPECT_FP8RT_ERROR(fp8rt_tensors_add(tensors.get(), nullptr, &good.view), FP8RT_INVALID_ARGUMENT,
                     "name is null");
  ASSERT_FP8RT(add("\xff", good.view));
  EXPECT_FP8RT_ERROR(fp8rt_tensors_write(tensors.get(), path("f").c_str()), FP8RT_INVALID_ARGUMENT, "UTF-8");
}

TEST_F(SafetensorsTest, AFailingWriteLeavesThePathAsItWas) {
  Tensors tensors = newTensors();
  std::vector<uint8_t> large(1 << 20);
  Literal<uint8_t> literal({kDLUInt, 8, 1}, {1 << 20}, large);
  ASSERT_FP8RT(fp8rt_tensors_add(tensors.get(), "x", &literal.view));
  std::ofstream(path("f")) << "old";
  // A size limit stands in for a full disk; in a child, since it stays.
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit = {1 << 16, 1 << 16};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(fp8rt_tensors_write(tensors.get(), path("f").c_str()));
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), FP8RT_IO);
  EXPECT_EQ(contents(path("f")), "old");
  EXPECT_EQ(files(), std::vector<std::string>{"f"});
}

TEST_F(SafetensorsTest, UnwritablePathsAreFoundBeforehand) {
  EXPECT_FP8RT_ERROR(fp8rt_check_writable(path("no/f").c_str()), FP8RT_IO, "no/f: cannot write");
  EXPECT_FP8RT_ERROR(fp8rt_check_writable(folder.c_str()), FP8RT_IO, "Is a directory");
  ASSERT_FP8RT(fp8rt_check_writable(path("f").c_str()));
  EXPECT_TRUE(files().empty());
}

TEST_F(SafetensorsTest, ATemporaryOfAnotherWriterIsLeftAlone) {
  std::string other = path(".f." + std::to_string(getpid()) + ".0.tmp");
  std::ofstream(other) << "half";
  ASSERT_FP8RT(fp8rt_tensors_write(newTensors().get(), path("f").c_str()));
  EXPECT_EQ(contents(path("f")).substr(8), "{}      ");
  EXPECT_EQ(contents(other), "half");
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(SafetensorsTest, LinksAndDevicesStayWhatTheyAre) {
  Tensors tensors = newTensors();
  std::ofstream(path("f")) << "old";
  std::filesystem::create_symlink("f", path("link"));
  ASSERT_FP8RT(fp8rt_tensors_write(tensors.get(), path("link").c_str()));
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(contents(path("f")).substr(8), "{}      ");
  std::filesystem::create_symlink("new", path("dangling"));
  ASSERT_FP8RT(fp8rt_tensors_write(tensors.get(), path("dangling").c_str()));
  EXPECT_TRUE(std::filesystem::is_symlink(path("dangling")));
  EXPECT_EQ(contents(path("new")).substr(8), "{}      ");
  std::filesystem::create_symlink("circle", path("circle"));
  EXPECT_EQ(fp8rt_tensors_write(tensors.get(), path("circle").c_str()), FP8RT_IO);
  EXPECT_TRUE(std::filesystem::is_symlink(path("circle")));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_FP8RT(fp8rt_tensors_write(tensors.get(), path("pipe").c_str()));
  char bytes[32];
  EXPECT_EQ(read(reader, bytes, sizeof(bytes)), 16);
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
}

TEST(FormatScalar, EveryType) {
  auto text = [](DLDataType type, uint64_t bits) -> std::string {
    Literal<uint64_t> literal(type, {1, 1}, {bits});
    char buffer[64];
    fp8rt_status status = fp8rt_format_scalar(&literal.view, buffer, sizeof(buffer));
    return status == FP8RT_OK ? buffer : fp8rt_last_error();
  };
  EXPECT_EQ(text({kDLBool, 8, 1}, 1), "1");
  EXPECT_EQ(text({kDLInt, 8, 1}, 0x80), "-128");
  EXPECT_EQ(text({kDLInt, 16, 1}, 0xffff), "-1");
  EXPECT_EQ(text(kI32, 0x80000000), "-2147483648");
  EXPECT_EQ(text({kDLInt, 64, 1}, 1ull << 63), "-9223372036854775808");
  EXPECT_EQ(text({kDLUInt, 8, 1}, 255), "255");
  EXPECT_EQ(text({kDLUInt, 16, 1}, 65535), "65535");
  EXPECT_EQ(text({kDLUInt, 32, 1}, 4294967295u), "4294967295");
  EXPECT_EQ(text({kDLUInt, 64, 1}, ~0ull), "18446744073709551615");
  EXPECT_EQ(text(kF32, 0x3dcccccd), "0.100000001");
  EXPECT_EQ(text(kF32, 0xffc00000), "nan");
  EXPECT_EQ(text(kF32, 0xff800000), "-inf");
  EXPECT_EQ(text({kDLFloat, 64, 1}, 0x3fb999999999999a), "0.10000000000000001");
  EXPECT_EQ(text({kDLFloat, 16, 1}, 0x7bff), "65504");
  EXPECT_EQ(text({kDLFloat, 16, 1}, 0x8001), "-5.96046448e-08");
  EXPECT_EQ(text({kDLFloat, 16, 1}, 0x7c00), "inf");
  EXPECT_EQ(text({kDLFloat, 16, 1}, 0x7e00), "nan");
  EXPECT_EQ(text(kBF16, 0xc049), "-3.140625");
  EXPECT_EQ(text(kBF16, 0x8000), "-0");
  DLDataType e4m3 = {FP8RT_DTYPE_CODE_F8E4M3FN, 8, 1};
  EXPECT_EQ(text(e4m3, 0x7e), "448");
  EXPECT_EQ(text(e4m3, 0x7f), "nan");
  EXPECT_EQ(text(e4m3, 0x81), "-0.001953125");
  EXPECT_EQ(text(e4m3, 0x38), "1");
  DLDataType e5m2 = {FP8RT_DTYPE_CODE_F8E5M2, 8, 1};
  EXPECT_EQ(text(e5m2, 0x7b), "57344");
  EXPECT_EQ(text(e5m2, 0xfc), "-inf");
  EXPECT_EQ(text(e5m2, 0x7f), "nan");
  DLDataType e8m0 = {FP8RT_DTYPE_CODE_F8E8M0FNU, 8, 1};
  EXPECT_EQ(text(e8m0, 127), "1");
  EXPECT_EQ(text(e8m0, 0), "5.87747175e-39");
  EXPECT_EQ(text(e8m0, 255), "nan");
}

TEST(FormatScalar, Errors) {
  char buffer[4];
  Literal<float> two(kF32, {2}, {1, 2});
  EXPECT_FP8RT_ERROR(fp8rt_format_scalar(&two.view, buffer, sizeof(buffer)), FP8RT_INVALID_ARGUMENT,
                     "f32[2] is not a scalar");
  Literal<float> one(kF32, {}, {0.1f});
  EXPECT_FP8RT_ERROR(fp8rt_format_scalar(&one.view, buffer, sizeof(buffer)), FP8RT_INVALID_ARGUMENT,
                     "capacity");
}

} // namespace
