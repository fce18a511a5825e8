// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled library, written by hand, that keeps the cast of a weight in its state: the cast of w is 2w. The
// state counts how often the initializer runs.

#include "fp8rt/call.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

#define W "'type':'f32','shape':[2]"
#define DATA "{'name':'data','type':'f32','shape':[2],'kind':'state'"
#define KEPT                                                                                                 \
  ",'parameters':{'entry':'initialize','arguments':[0],'casts':[{'arguments':[0],'tensors':['data']}]}"

static const char manifest[] =
    "{'version':1,'entries':["
    "{'name':'main','arguments':[{'name':'w'," W ",'carry':0,'written':true}," DATA
    ",'carry':2,'written':true}],"
    "'results':[{" W ",'alias':0},{'type':'f32','shape':[]}," DATA ",'alias':1}]" KEPT "},"
    "{'name':'evaluate','arguments':[{'name':'w'," W "}," DATA "}],'results':[{'type':'f32','shape':[]}]" KEPT
    "},"
    "{'name':'apply','arguments':[{'name':'w'," W ",'carry':0,'written':true}],'results':[{" W
    ",'alias':0}]},"
    "{'name':'initialize','arguments':[{'name':'w'," W "}," DATA ",'carry':0,'written':true},"
    "{'name':'casts','type':'i32','shape':[],'kind':'state','carry':1,'written':true}],"
    "'results':[" DATA ",'alias':1},{'name':'casts','type':'i32','shape':[],'kind':'state','alias':2}]}],"
    "'state':{'layout_hash':'casts','columns':[],'tensors':["
    "{'name':'data','type':'f32','shape':[2],'initial':'nan','derived':true},"
    "{'name':'casts','type':'i32','shape':[],'initial':0}]}}";

static char text[sizeof(manifest)];

EXPORT const char *fp8_manifest(void) {
  for (size_t i = 0; i < sizeof(manifest); ++i)
    text[i] = manifest[i] == '\'' ? '"' : manifest[i];
  return text;
}

static float *floats(DLTensor *tensor) { return (float *)((char *)tensor->data + tensor->byte_offset); }

static void cast(const float *w, float *data) {
  data[0] = 2 * w[0];
  data[1] = 2 * w[1];
}

/// Returns the sum of the cast, subtracts 1 from w, and casts it.
EXPORT int fp8_call_main(fp8rt_call *call) {
  float *w = floats(call->arguments[0]), *data = floats(call->arguments[1]);
  floats(call->results[1])[0] = data[0] + data[1];
  w[0] -= 1;
  w[1] -= 1;
  cast(w, data);
  return 0;
}

EXPORT int fp8_call_evaluate(fp8rt_call *call) {
  const float *data = floats(call->arguments[1]);
  floats(call->results[0])[0] = data[0] + data[1];
  return 0;
}

/// Changes w without a cast.
EXPORT int fp8_call_apply(fp8rt_call *call) {
  floats(call->arguments[0])[0] += 10;
  return 0;
}

EXPORT int fp8_call_initialize(fp8rt_call *call) {
  cast(floats(call->arguments[0]), floats(call->arguments[1]));
  ++*(int *)call->arguments[2]->data;
  return 0;
}
