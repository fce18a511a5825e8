# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""XLA's side of a custom call (python/lib/xla_ffi.h): hands handlers call frames with a GPU's stream and memory, where there is no GPU."""

import ctypes

P, I32, I64, U32, SIZE = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32, ctypes.c_size_t
INSTANTIATE, INITIALIZE, EXECUTE = 0, 2, 3
CAPTURABLE = 1


def struct(name, *fields, head=(("size", SIZE), ("extension", P))):
    return type(name, (ctypes.Structure,), {"_fields_": [*head, *fields]})


Buffer = struct("Buffer", ("type", I32), ("data", P), ("rank", I64), ("dimensions", ctypes.POINTER(I64)))
Buffers = struct("Buffers", ("count", I64), ("types", ctypes.POINTER(I32)), ("values", ctypes.POINTER(P)))
ByteSpan = struct("ByteSpan", ("data", ctypes.c_char_p), ("length", SIZE), head=())
Attributes = struct(
    "Attributes", ("count", I64), ("types", ctypes.POINTER(I32)), ("names", ctypes.POINTER(ctypes.POINTER(ByteSpan))), ("values", ctypes.POINTER(P))
)
CreateError = struct("CreateError", ("message", ctypes.c_char_p), ("code", I32))
StateArgs = struct("StateArgs", ("context", P), ("stage", I32), ("type", P), ("state", P))
StreamArgs = struct("StreamArgs", ("context", P), ("stream", P))
OrdinalArgs = struct("OrdinalArgs", ("context", P), ("ordinal", I32))
Version = struct("Version", ("major", I32), ("minor", I32))
Metadata = struct("Metadata", ("version", Version), ("traits", U32), ("state_type", I64), head=(("size", SIZE),))
Extension = struct("Extension", ("type", I32), ("next", P), head=(("size", SIZE),))
MetadataExtension = struct("MetadataExtension", ("base", Extension), ("metadata", ctypes.POINTER(Metadata)), head=())


def function(args):
    return ctypes.CFUNCTYPE(P, ctypes.POINTER(args))


Api = struct(
    "Api",
    ("version", Version),
    ("internal", P),
    ("create_error", function(CreateError)),
    ("errors_and_handlers", P * 3),
    ("get_stream", function(StreamArgs)),
    ("types_and_contexts", P * 2),
    ("set_state", function(StateArgs)),
    ("get_state", function(StateArgs)),
    ("memory_threads_futures_and_runs", P * 8),
    ("get_ordinal", function(OrdinalArgs)),
)
CallFrame = struct(
    "CallFrame",
    ("api", ctypes.POINTER(Api)),
    ("context", P),
    ("stage", I32),
    ("arguments", Buffers),
    ("results", Buffers),
    ("attributes", Attributes),
    # More follow.
    ("more", P * 4),
)

TYPES = {"i1": 1, "i8": 2, "i32": 4, "i64": 5, "ui8": 6, "ui32": 8, "f16": 10, "f32": 11, "bf16": 16}


class Error(Exception):
    """The message of a handler, with its code."""


class Call:
    """A custom call in a program, on GPU number `ordinal`: `instantiate`, then `initialize` and `execute` for each call.

    `handlers` are the functions of C by the names of their stages.
    """

    def __init__(self, handlers, entry, ordinal):
        self.handlers = handlers
        self.ordinal = ordinal
        self.entry = entry.encode()
        self.state = None
        self.streams = []
        self.error = None
        self.api = Api(size=ctypes.sizeof(Api))
        self.api.create_error = function(CreateError)(self._create_error)
        self.api.set_state = function(StateArgs)(self._set_state)
        self.api.get_state = function(StateArgs)(self._get_state)
        self.api.get_stream = function(StreamArgs)(self._get_stream)
        self.api.get_ordinal = function(OrdinalArgs)(self._get_ordinal)

    def _create_error(self, args):
        self.error = (args.contents.code, args.contents.message.decode())
        return 1

    def _set_state(self, args):
        self.state = args.contents.state

    def _get_state(self, args):
        assert args.contents.stage == INSTANTIATE
        args.contents.state = self.state

    def _get_stream(self, args):
        args.contents.stream = self.stream

    def _get_ordinal(self, args):
        args.contents.ordinal = self.ordinal

    def run(self, stage, arguments=(), results=(), stream=0):
        """Runs a stage on buffers: pairs of a type and an object with `shape` and `pointer`. Raises Error."""
        self.stream, self.error = stream, None
        name = ByteSpan(b"entry", 5)
        value = ByteSpan(self.entry, len(self.entry))
        attributes = Attributes(
            size=ctypes.sizeof(Attributes), count=1, types=(I32 * 1)(4), names=(ctypes.POINTER(ByteSpan) * 1)(ctypes.pointer(name)),
            values=(P * 1)(ctypes.cast(ctypes.pointer(value), P)),
        )  # fmt: skip
        keep = []
        frame = CallFrame(
            size=ctypes.sizeof(CallFrame), api=ctypes.pointer(self.api), stage=stage, arguments=_buffers(arguments, keep), results=_buffers(results, keep),
            attributes=attributes,
        )  # fmt: skip
        handler = self.handlers[stage]
        handler.restype = P
        failed = handler(ctypes.byref(frame))
        assert bool(failed) == (self.error is not None)
        if failed:
            raise Error(self.error[1], self.error[0])


def _buffers(given, keep):
    buffers = []
    for type, buffer in given:
        sizes = (I64 * max(1, len(buffer.shape)))(*buffer.shape)
        made = Buffer(size=ctypes.sizeof(Buffer), type=TYPES[type], data=buffer.pointer, rank=len(buffer.shape), dimensions=sizes)
        buffers.append(ctypes.pointer(made))
        keep.append((sizes, made))
    values = (P * max(1, len(buffers)))(*(ctypes.cast(b, P) for b in buffers))
    return Buffers(size=ctypes.sizeof(Buffers), count=len(buffers), types=(I32 * max(1, len(buffers)))(*[1] * len(buffers)), values=values)


def traits(handler):
    """The traits that a handler answers XLA's question what it is."""
    metadata = Metadata(size=ctypes.sizeof(Metadata))
    extension = MetadataExtension(Extension(ctypes.sizeof(Extension), 1, None), ctypes.pointer(metadata))
    frame = CallFrame(size=ctypes.sizeof(CallFrame), extension=ctypes.cast(ctypes.pointer(extension), P))
    handler.restype = P
    assert not handler(ctypes.byref(frame))
    assert (metadata.version.major, metadata.version.minor) == (0, 3)
    return metadata.traits
