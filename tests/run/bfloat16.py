# SPDX-License-Identifier: Apache-2.0
"""What tests of the types of 16 bits share: rounding as dgc does, and a file that other programs could have written."""
import json
import struct

import needs

ml_dtypes, np = needs.modules("ml_dtypes", "numpy")
LEAST = 2.0**-126
DTYPES = {"F32": np.float32, "BF16": ml_dtypes.bfloat16, "F16": np.float16, "F64": np.float64, "I64": np.int64}


def rounded(x, kind="bf16"):
    """The nearest binary16; or the nearest bfloat16, and zero for a subnormal number."""
    with np.errstate(all="ignore"):
        y = x.astype(np.float32).astype(DTYPES[kind.upper()]).astype(np.float32)
    return y if kind == "f16" else np.where(np.abs(x) < LEAST, np.copysign(np.float32(0), x.astype(np.float32)), y)


def write_f32(path, tensors):
    """A safetensors file of f32 alone."""
    head, body = {}, b""
    for name, v in tensors.items():
        head[name] = {"dtype": "F32", "shape": v.shape, "data_offsets": [len(body), len(body) + v.nbytes]}
        body += v.tobytes()
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def read(path):
    """The tensors of a safetensors file, by name."""
    with open(path, "rb") as f:
        data = f.read()
    size, = struct.unpack_from("<Q", data)
    head, body = json.loads(data[8:8 + size]), data[8 + size:]
    return {name: np.frombuffer(body[slice(*d["data_offsets"])], DTYPES[d["dtype"]]).reshape(d["shape"])
            for name, d in head.items() if name != "__metadata__"}
