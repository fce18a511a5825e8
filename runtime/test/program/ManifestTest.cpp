// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Manifests that are wrong: each rule of the runtime broken once, and random
// damage.

#include "TestSupport.h"

#include <cstdlib>
#include <random>

using namespace fp8rt_test;

namespace {

/// Loads a library with that manifest; single quotes stand for double ones.
fp8rt_status load(std::string manifest) {
  for (char &c : manifest)
    c = c == '\'' ? '"' : c;
  setenv("FP8RT_TEST_MANIFEST", manifest.c_str(), /*overwrite=*/1);
  fp8rt_library *library = nullptr;
  fp8rt_status status = fp8rt_library_load(ANY_MANIFEST, &library);
  fp8rt_library_destroy(library);
  return status;
}

/// A manifest whose entry 'main' has those arguments, results and more.
std::string entry(const std::string &arguments, const std::string &results, const std::string &more = "") {
  return "{'version':1,'state':{'tensors':[{'name':'scale','type':'f32',"
         "'shape':[2],'initial':1}]},'entries':[{'name':'main','arguments':[" +
         arguments + "],'results':[" + results + "]" + more + "}]}";
}

const std::string kScalar = "{'type':'f32','shape':[]}";

TEST(ManifestTest, TheLeastThatIsValid) {
  EXPECT_EQ(load("{'version':1,'entries':[{'name':'main','arguments':[],"
                 "'results':[]}]}"),
            FP8RT_OK)
      << fp8rt_last_error();
  EXPECT_EQ(load(entry(kScalar, kScalar)), FP8RT_OK) << fp8rt_last_error();
}

TEST(ManifestTest, KeptCasts) {
  auto load = [](const std::string &casts, const std::string &initializer) {
    return ::load("{'version':1,'state':{'tensors':[{'name':'c','type':'f32','shape':[],'initial':'nan','"
                  "derived':true},"
                  "{'name':'s','type':'f32','shape':[]}]},'entries':[{'name':'other','arguments':[" +
                  initializer + "],'results':[]},{'name':'main','arguments':[" + kScalar +
                  "],'results':[],'parameters':{'entry':'other','arguments':[0],'casts':[" + casts + "]}}]}");
  };
  // The fixture has no such entry; its manifest is right.
  EXPECT_FP8RT_ERROR(load("{'arguments':[0],'tensors':['c']}", kScalar), FP8RT_CORRUPT,
                     "it does not export fp8_call_other");
  EXPECT_FP8RT_ERROR(load("{'arguments':[1],'tensors':['c']}", kScalar), FP8RT_CORRUPT,
                     "a parameter is computed from argument 1, which is none of the user's");
  EXPECT_FP8RT_ERROR(load("{'arguments':[0],'tensors':['s']}", kScalar), FP8RT_CORRUPT,
                     "parameter 's' is no derived tensor of the state");
  EXPECT_FP8RT_ERROR(load("", "{'type':'f32','shape':[2]}"), FP8RT_CORRUPT,
                     "argument 0 of 'other' is none of its arguments");
  EXPECT_FP8RT_ERROR(load("", kScalar + "," + kScalar), FP8RT_CORRUPT,
                     "argument 1 of 'other' is none of its arguments");
  EXPECT_FP8RT_ERROR(load("", ""), FP8RT_CORRUPT, "argument 0 of 'other' is none of its arguments");
}

TEST(ManifestTest, CallsOfNewerLibraries) {
  EXPECT_EQ(load("{'version':1,'call':2,'entries':[{'name':'main','arguments':[],'results':[]}]}"), FP8RT_OK)
      << fp8rt_last_error();
  EXPECT_FP8RT_ERROR(load("{'version':1,'call':3}"), FP8RT_UNSUPPORTED,
                     "takes calls of version 3, this runtime makes those up to 2: use a newer runtime");
}

TEST(ManifestTest, NoManifest) {
  unsetenv("FP8RT_TEST_MANIFEST");
  fp8rt_library *library = nullptr;
  EXPECT_FP8RT_ERROR(fp8rt_library_load(ANY_MANIFEST, &library), FP8RT_CORRUPT, "its manifest is null");
}

TEST(ManifestTest, WrongFields) {
  auto expect = [](const std::string &manifest, const char *part) {
    EXPECT_FP8RT_ERROR(load(manifest), FP8RT_CORRUPT, part);
  };
  expect("{'version':1", "not JSON");
  expect("[]", "manifest is not an object");
  expect("{}", "manifest has no version");
  expect("{'version':2}", "manifest.version is 2, expected an integer from 1");
  expect("{'version':1}", "has no entries");
  expect("{'version':1,'entries':3}", "manifest.entries is not a list");
  expect("{'version':1,'entries':[]}", "there are no entries");
  expect("{'version':1,'entries':[7]}", "manifest.entries[0] is not an object");
  expect("{'version':1,'entries':[{'name':'main'}]}", "has no arguments");
  expect("{'version':1,'entries':[{'name':'other','arguments':[],"
         "'results':[]}]}",
         "does not export fp8_call_other");
  expect(entry("{'type':7,'shape':[]}", ""), "manifest.entries[0].arguments[0].type is not a string");
  expect(entry("{'shape':[]}", ""), "has no type");
  expect(entry("{'type':'f32'}", ""), "has no shape");
  expect(entry("{'type':'f32','shape':[-2]}", ""), "shape[0] is -2");
  expect(entry("{'type':'f32','shape':[1.5]}", ""), "shape[0] is 1.5");
  expect(entry("{'type':'f32','shape':[18446744073709551615]}", ""), "shape[0] is 18446744073709551615");
  expect(entry("{'type':'f32','shape':[],'kind':'cruel'}", ""), "is 'cruel'");
  expect(entry("{'type':'f32','shape':[],'written':1}", ""), "not a boolean");
  expect(entry("{'type':'f32','shape':[],'index':1}", ""), "index is 1");
  expect(entry("", "", ",'capturable':1"), "entries[0].capturable is not a boolean");
  expect("{'version':1,'call':0}", "manifest.call is 0, expected an integer from 1");
  expect(entry("", "", ",'workspace_bytes':-1"), "workspace_bytes is -1");
  expect(entry("", "", ",'workspace_alignment':48"), "not a power of two");
  EXPECT_FP8RT_ERROR(load(entry("{'type':'f4','shape':[]}", "")), FP8RT_UNSUPPORTED, "type 'f4'");
}

TEST(ManifestTest, Processor) {
  auto loadFor = [](const std::string &cpu) {
    return load("{'version':1,'cpu':" + cpu + ",'entries':[{'name':'main','arguments':[],'results':[]}]}");
  };
  EXPECT_EQ(loadFor("null"), FP8RT_OK) << fp8rt_last_error();
  EXPECT_EQ(loadFor("{'name':'any','features':[]}"), FP8RT_OK) << fp8rt_last_error();
  EXPECT_FP8RT_ERROR(loadFor("7"), FP8RT_CORRUPT, "manifest.cpu is not an object");
  EXPECT_FP8RT_ERROR(loadFor("{'name':'any'}"), FP8RT_CORRUPT, "manifest.cpu has no features");
  EXPECT_FP8RT_ERROR(loadFor("{'name':'any','features':[3]}"), FP8RT_CORRUPT, "features[0] is not a string");
#if defined(__x86_64__)
  EXPECT_EQ(loadFor("{'name':'any','features':['sse2','cmov']}"), FP8RT_OK) << fp8rt_last_error();
  EXPECT_FP8RT_ERROR(loadFor("{'name':'any','features':['sse2','psychic']}"), FP8RT_UNSUPPORTED,
                     "feature 'psychic' is unknown to this runtime");
  // No processor has both AMD's vectors of the Bulldozers and AVX-512 with f16.
  EXPECT_FP8RT_ERROR(loadFor("{'name':'any','features':['xop','sse2','avx512fp16']}"), FP8RT_UNSUPPORTED,
                     "compiled for the processor 'any', and this machine lacks its");
#endif
}

TEST(ManifestTest, Contradictions) {
  auto expect = [](const std::string &arguments, const std::string &results, const char *part) {
    EXPECT_FP8RT_ERROR(load(entry(arguments, results)), FP8RT_CORRUPT, part);
  };
  std::string carried = "{'type':'f32','shape':[],'carry':0";
  expect(carried + "}", "", "argument 0 is carried from a result beyond");
  expect(carried + "}", "{'type':'f32','shape':[1]}", "of another type");
  expect(kScalar, "{'type':'f32','shape':[],'alias':1}", "result 0 aliases an argument beyond");
  expect(kScalar, "{'type':'f32','shape':[],'alias':0}", "neither its state nor carried");
  expect(carried + "}", "{'type':'f32','shape':[],'alias':0}", "argument 0 is aliased but not written");
  // A residual may be an argument, as it was given.
  std::string residual = "{'type':'f32','shape':[],'alias':0,'kind':'residual'}";
  EXPECT_EQ(load(entry(kScalar, residual)), FP8RT_OK);
  expect(carried + "}", residual, "argument 0 is aliased but not written");
  expect("{'type':'f32','shape':[1]}", residual, "neither its state nor carried");
  expect("{'type':'f32','shape':[],'written':true}", "", "argument 0 is written but not aliased");
  std::string state = "{'name':'scale','type':'f32','shape':[2],'kind':'state'";
  expect(state + "}," + state + "}", "", "the second of state 'scale'");
  expect("{'name':'scale','type':'f32','shape':[3],'kind':'state'}", "", "no tensor of the state");
  expect("", "{'name':'s','type':'f32','shape':[2],'kind':'state'}", "no tensor of the state");
  expect(state + ",'written':true}", state + ",'alias':0}," + state + ",'alias':0}",
         "two results alias argument 0");
}

TEST(ManifestTest, WrongStates) {
  auto expect = [](const std::string &tensors, fp8rt_status status, const char *part) {
    std::string manifest = "{'version':1,'state':{'tensors':[" + tensors +
                           "]},'entries':[{'name':'main','arguments':[],"
                           "'results':[]}]}";
    EXPECT_FP8RT_ERROR(load(manifest), status, part);
  };
  std::string s = "{'name':'s','type':'f32','shape':[2]}";
  expect(s + "," + s, FP8RT_CORRUPT, "there twice");
  expect("{'name':'s','type':'f32','shape':[null]}", FP8RT_CORRUPT, "dynamic shape");
  expect("{'name':'s','type':'f32','shape':[],'initial':'1'}", FP8RT_CORRUPT, "initial is not a number");
  expect("{'name':'s','type':'f32','shape':[2],'initial':[1,'x']}", FP8RT_CORRUPT,
         "initial[1] is not a number");
  expect("{'name':'s','type':'f32','shape':[2,2],'initial':[1,2,3]}", FP8RT_CORRUPT,
         "initial has 3 numbers, not one for each element");
  expect("{'name':'s','type':'f32','shape':[],'initial':[1,2]}", FP8RT_CORRUPT, "initial has 2 numbers");
}

TEST(ManifestTest, RandomDamageNeverCrashes) {
  const char *given = std::getenv("FP8RT_FUZZ_SEED");
  uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("FP8RT_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::string valid = fp8rt_library_manifest(loadFixture().get());
  const std::string tokens = "0123456789-{}[],:\"\\n";
  int refused = 0;
  for (int run = 0; run < 1000; ++run) {
    std::string manifest = valid;
    for (uint64_t n = 1 + random() % 3; n > 0; --n)
      manifest[random() % manifest.size()] = tokens[random() % tokens.size()];
    fp8rt_status status = load(manifest);
    refused += status != FP8RT_OK;
    ASSERT_TRUE(status == FP8RT_OK || status == FP8RT_CORRUPT || status == FP8RT_UNSUPPORTED)
        << "run " << run << ": " << fp8rt_last_error();
  }
  EXPECT_GT(refused, 500);
}

} // namespace
