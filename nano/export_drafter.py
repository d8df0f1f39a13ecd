"""Write the trained drafter as GGUF: `python -m nano.export_drafter --out nano/out`.

Embedding and head are not in the file: the drafter borrows the target's.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import gguf
import torch

from nano.drafter import Drafter, DraftShape
from nano.export import add_sizes, add_vocabulary, store
from nano.restore import restore_model

ARCHITECTURE = "dflash"
LAYER_TENSORS = {
    "attn_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
    "attn_q_norm": "q_norm",
    "attn_k_norm": "k_norm",
    "attn_q": "q.weight",
    "attn_k": "k.weight",
    "attn_v": "v.weight",
    "attn_output": "o.weight",
    "ffn_up": "ffn_up.weight",
    "ffn_gate": "ffn_gate.weight",
    "ffn_down": "ffn_down.weight",
}


def export(drafter: Drafter, tokenizer: Path, target: Path, quantized: bool = True) -> None:
    """Write `drafter` to `target`."""
    shape, model = drafter.shape, drafter.shape.target
    writer = gguf.GGUFWriter(target, ARCHITECTURE)
    writer.add_name("Glimmer Nano drafter")
    writer.add_license("apache-2.0")
    add_sizes(writer, replace(model, layers=shape.layers))
    writer.add_sliding_window(shape.window)
    writer.add_sliding_window_pattern([True] * shape.layers)
    writer.add_uint32(f"{ARCHITECTURE}.block_size", shape.block)
    writer.add_array(f"{ARCHITECTURE}.target_layers", list(shape.taps))
    add_vocabulary(writer, tokenizer)
    own = dict(drafter.named_parameters())
    tensors = {
        "fc.weight": own["fuse.weight"],
        "enc.output_norm.weight": own["fuse_norm"],
        "output_norm.weight": own["norm"],
    }
    store(writer, tensors, own, LAYER_TENSORS, quantized)


def main() -> None:
    """Export the checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("nano/out"))
    parser.add_argument("--model", type=Path, default=Path("glimmer_tui/models/glimmer-nano.gguf"))
    parser.add_argument("--to", type=Path, default=Path("glimmer_tui/models/dflash-glimmer-nano.gguf"))
    options = parser.parse_args()
    drafter = Drafter(DraftShape(restore_model(options.model).shape))
    drafter.load_state_dict(torch.load(options.out / "drafter.pt", weights_only=True))
    export(drafter, options.out / "tokenizer.json", options.to)
    print(f"{options.to}: {options.to.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
