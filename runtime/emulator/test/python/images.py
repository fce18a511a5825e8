# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Images as NVIDIA's tools write them: cubins with what the emulator looks at, and fat binaries.

import ctypes
import ctypes.util
import struct

SHT_SYMTAB, SHT_PROGBITS, SHT_STRTAB = 2, 1, 3
PTX, ELF = 1, 2
LZ4, ZSTD = 0x2000, 0x8000


def strings(names):
    """A table of strings, and where each begins."""
    table, places = b"\0", {}
    for name in names:
        places[name] = len(table)
        table += name.encode() + b"\0"
    return table, places


def cubin(texts, kernels):
    """An ELF file for EM_CUDA that carries the PTX `texts`; `kernels` gives each kernel's bytes of parameters."""
    names, symbols = strings(kernels)
    table = bytes(24) + b"".join(struct.pack("<IBBHQQ", symbols[kernel], 0x12, 0x10, 1, 0, 0) for kernel in kernels)
    sections = [("", 0, b"", 0), (".strtab", SHT_STRTAB, names, 0), (".symtab", SHT_SYMTAB, table, 1)]
    suffixes = [""] if len(texts) == 1 else [".%d" % i for i in range(len(texts))]
    sections += [(".nv_debug_ptx_txt" + suffix, SHT_PROGBITS, text.encode().replace(b"\n", b"\0"), 0)
                 for suffix, text in zip(suffixes, texts)]
    # Attributes: one whose size follows, then the bytes of parameters.
    sections += [(".nv.info." + kernel, SHT_PROGBITS, struct.pack("<BBHIBBH", 4, 0x37, 4, 130, 3, 0x19, size), 0)
                 for kernel, size in kernels.items()]
    heads, places = strings([name for name, *_ in sections] + [".shstrtab"])
    sections.append((".shstrtab", SHT_STRTAB, heads, 0))
    body, headers = b"", b""
    for name, kind, content, link in sections:
        headers += struct.pack("<IIQQQQIIQQ", places[name], kind, 0, 0, 64 + len(body), len(content), link, 0, 1, 24 if kind == SHT_SYMTAB else 0)
        body += content
    count = len(sections)
    ident = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7)
    return ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 0x6005A04, 64, 0, 0, 64, count, count - 1) + body + headers


#: The library of each compression, and its function.
LIBRARIES = {LZ4: ("liblz4.so.1", "LZ4_compress_default"), ZSTD: ("libzstd.so.1", "ZSTD_compress")}


def compressed(data, flag):
    """The data, compressed by the system's library; None where there is none."""
    library, name = LIBRARIES[flag]
    try:
        function = getattr(ctypes.CDLL(library), name)
    except OSError:
        return None
    out = ctypes.create_string_buffer(len(data) + 1024)
    if flag == LZ4:
        count = function(data, out, len(data), len(out))
    else:
        function.restype = ctypes.c_size_t
        count = function(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:count]


def entry(kind, arch, data, flag=0):
    """An entry of a fat binary; `flag` says how its content is to be compressed."""
    data += b"\0" if kind == PTX else b""
    content = compressed(data, flag) if flag else data
    padded = content + bytes(-len(content) % 8)
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(padded), len(content) if flag else 0, 0, 0, 9, arch, 0, 0,
                       0x11 | flag, 0, len(data) if flag else 0) + padded


def fat_binary(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def wrapped(image):
    """The wrapper that nvcc puts into programs, and the image that has to live as long."""
    kept = ctypes.create_string_buffer(image, len(image))
    return struct.pack("<IIQQ", 0x466243B1, 1, ctypes.addressof(kept), 0), kept
