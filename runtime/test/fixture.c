// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled library written by hand: what the runtime's tests run. Its entries
// do a little arithmetic that a test can repeat, with every kind of argument
// and result that a manifest knows.

#include "fp8rt/call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define STATE_ARGUMENTS(A, B, WRITTEN)                                                                       \
  "{'index':" A ",'name':'scale','type':'f32','shape':[2],'kind':'state',"                                   \
  "'carry':null,'written':" WRITTEN "},"                                                                     \
  "{'index':" B ",'name':'amax_history','type':'f32','shape':[3,2],"                                         \
  "'kind':'state','carry':null,'written':" WRITTEN "}"

static const char manifest[] =
    "{'version':1,'recipe':'delayed','target':'cpu','entries':["
    "{'name':'main','workspace_bytes':24,'workspace_alignment':64,"
    "'arguments':["
    "{'index':0,'name':'w','type':'f32','shape':[2,3],'kind':'user',"
    "'carry':0,'written':true},"
    "{'index':1,'name':'m','type':'bf16','shape':[4],'kind':'user',"
    "'carry':1,'written':false},"
    "{'index':2,'name':'x','type':'f32','shape':[3],'kind':'user',"
    "'carry':null,'written':false},"
    "{'index':3,'name':'n','type':'i32','shape':[],'kind':'user',"
    "'carry':null,'written':false}," STATE_ARGUMENTS(
        "4", "5", "true") "],"
                          "'results':["
                          "{'index':0,'name':'','type':'f32','shape':[2,3],'kind':'user',"
                          "'alias':0},"
                          "{'index':1,'name':'','type':'bf16','shape':[4],'kind':'user',"
                          "'alias':null},"
                          "{'index':2,'name':'loss','type':'f32','shape':[],'kind':'user'"
                          ","
                          "'alias':null},"
                          "{'index':3,'name':'half','type':'bf16','shape':[],'kind':'"
                          "user',"
                          "'alias':null},"
                          "{'index':4,'name':'ramp','type':'i64','shape':[null],'kind':'"
                          "user',"
                          "'alias':null},"
                          "{'index':5,'name':'scale','type':'f32','shape':[2],'kind':'"
                          "state',"
                          "'alias':4},"
                          "{'index':6,'name':'amax_history','type':'f32','shape':[3,2],"
                          "'kind':'state','alias':5}]},"

                          "{'name':'evaluate','arguments':["
                          "{'name':'x','type':'f32','shape':[null]}," STATE_ARGUMENTS(
                              "1", "2", "false") "],"
                                                 "'results':[{'name':'loss','type':'f32','shape':[]"
                                                 "}]},"

                                                 "{'name':'forward','arguments':["
                                                 "{'name':'x','type':'f32','shape':[3]}"
                                                 "," STATE_ARGUMENTS(
                                                     "1", "2", "false") "],"
                                                                        "'results':[{'name':'loss','type':'"
                                                                        "f32','shape':[]},"
                                                                        "{'name':'saved','type':'f32','shape'"
                                                                        ":[3],'kind':'residual'},"
                                                                        "{'name':'count','type':'i32','shape'"
                                                                        ":[]}]},"

                                                                        "{'name':'backward','arguments':["
                                                                        "{'name':'saved','type':'f32','shape'"
                                                                        ":[3],'kind':'residual'},"
                                                                        "{'name':'g','type':'f32','shape':[]}"
                                                                        "],"
                                                                        "'results':[{'name':'gx','type':'f32'"
                                                                        ",'shape':[3]}]},"

                                                                        "{'name':'failing','arguments':[],'"
                                                                        "results':[]},"
                                                                        "{'name':'twins','arguments':["
                                                                        "{'name':'t','type':'i8','shape':[],'"
                                                                        "carry':0},"
                                                                        "{'name':'t','type':'i8','shape':[],'"
                                                                        "carry':0}],"
                                                                        "'results':[{'type':'i8','shape':[]}]"
                                                                        "}"
                                                                        "],"
                                                                        "'state':{'layout_hash':'abc123','"
                                                                        "columns':["
                                                                        "{'index':0,'sites':['fc'],'tensor':'"
                                                                        "input','format':'E4M3',"
                                                                        "'fp8_max':448.0},"
                                                                        "{'index':1,'sites':['fc'],'tensor':'"
                                                                        "weight','format':'E4M3',"
                                                                        "'fp8_max':448.0}],"
                                                                        "'tensors':["
                                                                        "{'name':'scale','type':'f32','shape'"
                                                                        ":[2],'initial':1.0},"
                                                                        "{'name':'amax_history','type':'f32',"
                                                                        "'shape':[3,2],'initial':0.0}]},"
                                                                        "'sites':[]}";

static char text[sizeof(manifest)];

/// Single quotes above, JSON's outside.
__attribute__((constructor)) static void makeText(void) {
  for (size_t i = 0; i < sizeof(manifest); ++i)
    text[i] = manifest[i] == '\'' ? '"' : manifest[i];
}

EXPORT const char *fp8_manifest(void) { return text; }

EXPORT const char *fp8_kernels(void) {
  return "{\"sites\":[\"fc\",\"h1/fc\"],\"kernels\":["
         "{\"name\":\"double_fc\",\"kind\":\"elementwise\",\"sites\":[1,0],\"read\":12,\"written\":12,"
         "\"operations\":3},"
         "{\"name\":\"sum\",\"kind\":\"reductions\",\"sites\":[],\"read\":null,\"written\":4,"
         "\"operations\":null}]}";
}

static void record(fp8rt_call *call, int32_t kernel) {
  if ((call->flags & FP8RT_CALL_HAS_PROFILE) && call->profile)
    call->profile->record(call->profile, kernel);
}

static int failWith(fp8rt_call *call, const char *reason) {
  if (call->error_capacity)
    snprintf(call->error, call->error_capacity, "%s", reason);
  return 1;
}

static void *dataOf(DLTensor *tensor) { return (char *)tensor->data + tensor->byte_offset; }

/// Column c: records the amax, then scales by it, as in delayed scaling.
static void updateState(float *scale, float *history, int c, float amax) {
  float max = amax > history[2 + c] ? amax : history[2 + c];
  max = max > history[4 + c] ? max : history[4 + c];
  history[2 + c] = history[4 + c];
  history[4 + c] = amax;
  scale[c] = 448.0f / max;
}

EXPORT int fp8_call_main(fp8rt_call *call) {
  if (call->version != 1 || call->num_arguments != 6 || call->num_results != 7)
    return failWith(call, "the call does not fit the manifest");
  if (call->workspace_bytes < 24 || (uintptr_t)call->workspace % 64)
    return failWith(call, "the workspace does not fit the manifest");
  float *w = dataOf(call->arguments[0]);
  uint16_t *m = dataOf(call->arguments[1]);
  float *x = dataOf(call->arguments[2]);
  int32_t n = *(int32_t *)dataOf(call->arguments[3]);
  float *scale = dataOf(call->arguments[4]);
  float *history = dataOf(call->arguments[5]);

  float *next = call->workspace;
  float sum = 0, xmax = 0, wmax = 0;
  for (int i = 0; i < 6; ++i) {
    next[i] = 0.9f * w[i] + 0.01f * x[i % 3] / scale[i / 3];
    sum += next[i];
    wmax = fmaxf(wmax, fabsf(next[i]));
    xmax = fmaxf(xmax, fabsf(x[i % 3]));
  }
  memcpy(w, next, 24);
  updateState(scale, history, 0, xmax);
  updateState(scale, history, 1, wmax);

  uint16_t *mNext = dataOf(call->results[1]);
  for (int i = 0; i < 4; ++i)
    mNext[i] = m[i] + 1;
  *(float *)dataOf(call->results[2]) = sum;
  uint32_t bits;
  memcpy(&bits, &sum, 4);
  *(uint16_t *)dataOf(call->results[3]) = bits >> 16;

  int64_t shape[1] = {n};
  if (n < 0 || call->allocate(call->allocate_context, 4, shape, 1, call->results[4]))
    return failWith(call, "no memory for result 4");
  for (int64_t i = 0; i < n; ++i)
    ((int64_t *)dataOf(call->results[4]))[i] = i;
  return 0;
}

EXPORT int fp8_call_evaluate(fp8rt_call *call) {
  float *x = dataOf(call->arguments[0]);
  float sum = 0;
  for (int64_t i = 0; i < call->arguments[0]->shape[0]; ++i)
    sum += x[i] * ((float *)dataOf(call->arguments[1]))[0];
  *(float *)dataOf(call->results[0]) = sum;
  return 0;
}

EXPORT int fp8_call_forward(fp8rt_call *call) {
  float *x = dataOf(call->arguments[0]);
  record(call, -1);
  for (int i = 0; i < 3; ++i) {
    ((float *)dataOf(call->results[1]))[i] = 2 * x[i];
    record(call, 0);
  }
  *(float *)dataOf(call->results[0]) = x[0] + x[1] + x[2];
  if ((call->flags & FP8RT_CALL_HAS_PROFILE) && call->profile)
    usleep(1000);
  record(call, 1);
  *(int32_t *)dataOf(call->results[2]) = 3;
  return 0;
}

EXPORT int fp8_call_backward(fp8rt_call *call) {
  float *saved = dataOf(call->arguments[0]);
  float g = *(float *)dataOf(call->arguments[1]);
  for (int i = 0; i < 3; ++i)
    ((float *)dataOf(call->results[0]))[i] = g * saved[i];
  return 0;
}

EXPORT int fp8_call_failing(fp8rt_call *call) { return failWith(call, "it always fails"); }

EXPORT int fp8_call_twins(fp8rt_call *call) {
  int8_t a = *(int8_t *)dataOf(call->arguments[0]);
  int8_t b = *(int8_t *)dataOf(call->arguments[1]);
  *(int8_t *)dataOf(call->results[0]) = (int8_t)(a + b);
  return 0;
}
