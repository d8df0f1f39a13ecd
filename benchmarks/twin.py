"""Write the bandwidth-bound twin of a small model: `python -m benchmarks.twin twin.gguf`.

A tiny model lies in the processor's cache and is bound by arithmetic, so drafting cannot pay there as it does
where weights come from memory. The twin computes the same function with its feed-forward layers padded by
neurons of zero weight, in F32: it has the outputs of the small model and the cost of a large one.
"""

import argparse
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGUFReader, GGUFValueType
from gguf.quants import dequantize

ARCHITECTURE = "muse-glimmer"
GIGABYTES = 2.4
_PADDED = {"ffn_up": 0, "ffn_gate": 0, "ffn_down": 1}
"""The axis along which each matrix is padded, rows first."""


def write_twin(source: Path, target: Path, gigabytes: float = GIGABYTES) -> Path:
    """Write the twin of `source`, of about so many gigabytes (1e9 bytes)."""
    reader = GGUFReader(source)
    layers = _value(reader, f"{ARCHITECTURE}.block_count")
    width = _value(reader, f"{ARCHITECTURE}.embedding_length")
    neurons = int(gigabytes * 1e9 / (layers * 3 * width * 4)) // 256 * 256
    writer = gguf.GGUFWriter(target, ARCHITECTURE)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        value: Any = neurons if field.name == f"{ARCHITECTURE}.feed_forward_length" else field.contents()
        kind = field.types[0]
        inner = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, value, kind, inner)
    sizes: list[tuple[Any, tuple[int, ...]]] = []
    for tensor in reader.tensors:
        shape = tuple(int(size) for size in reversed(tensor.shape))
        axis = _PADDED.get(tensor.name.split(".")[-2])
        if axis is not None:
            shape = tuple(neurons if number == axis else size for number, size in enumerate(shape))
        nbytes = int(np.prod(shape)) * 4
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), nbytes)
        sizes.append((tensor, shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor, shape in sizes:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        values = values.reshape(tuple(int(size) for size in reversed(tensor.shape)))
        padded = np.zeros(shape, np.float32)
        padded[tuple(slice(size) for size in values.shape)] = values
        writer.write_tensor_data(padded)
    writer.close()
    return target


def _value(reader: GGUFReader, name: str) -> int:
    field = reader.get_field(name)
    if field is None:
        raise SystemExit(f"The model has no key {name}.")
    return int(field.contents())


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--model", type=Path, default=Path("glimmer_tui/models/glimmer-nano.gguf"))
    parser.add_argument("--gigabytes", type=float, default=GIGABYTES)
    options = parser.parse_args()
    write_twin(options.model, options.target, options.gigabytes)
    print(f"{options.target}: {options.target.stat().st_size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
