"""Write a trained encoder as the projector file that llama.cpp's mtmd loads: `python -m nano.vision.export`.

Matrices are stored as q8_0 where mtmd multiplies with them, everything else as f32.
"""

import argparse
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType
from torch import Tensor

from nano.vision.encoder import MERGE, PATCH, Eye, EyeShape

BLOCK_TENSORS = ("attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down", "ln1", "ln2")


def load_eye(checkpoint: Path) -> Eye:
    """The encoder of a training checkpoint."""
    state = torch.load(checkpoint, weights_only=True)
    eye = Eye(EyeShape(**state["shape"]))
    eye.load_state_dict(state["eye"])
    return eye.eval()


def export(eye: Eye, target: Path, quantized: bool = True) -> None:
    """Write `eye` to `target`."""
    writer = gguf.GGUFWriter(target, "clip")
    _add_settings(writer, eye.shape)
    for name, tensor in tensors(eye).items():
        values = tensor.detach().float().numpy().astype(np.float32)
        if quantized and values.ndim == 2 and not name.startswith("v.position"):
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors(eye: Eye) -> dict[str, Tensor]:
    """The weights by the names that the projector's graph asks for."""
    own, width = dict(eye.named_parameters()), eye.shape.width
    found = {
        "v.patch_embd.weight": own["patches.weight"].view(width, 3, PATCH, PATCH),
        "v.position_embd.weight": own["positions"],
    }
    for name in ("pre_ln", "post_ln"):
        for part in ("weight", "bias"):
            found[f"v.{name}.{part}"] = own[f"{name}.{part}"]
    for index in range(eye.shape.blocks):
        for part in ("weight", "bias"):
            here, there = f"blocks.{index}", f"v.blk.{index}"
            for name in BLOCK_TENSORS:
                found[f"{there}.{name}.{part}"] = own[f"{here}.{name}.{part}"]
    for index in range(3):
        found[f"mm.{index}.weight"] = own[f"mm.{index}.weight"]
    return found


def _add_settings(writer: gguf.GGUFWriter, shape: EyeShape) -> None:
    writer.add_type("mmproj")
    writer.add_name("Glimmer Nano vision")
    writer.add_description(
        "Demonstration encoder of Glimmer: reads a failing test off a picture of a terminal."
    )
    writer.add_license("apache-2.0")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_bool("clip.use_gelu", True)
    writer.add_string("clip.projector_type", "muse-glimmer")
    sizes = {
        "embedding_length": shape.width,
        "feed_forward_length": shape.ffn,
        "block_count": shape.blocks,
        "projection_dim": shape.out,
        "image_size": shape.side * PATCH,
        "patch_size": PATCH,
        "spatial_merge_size": MERGE,
        "attention.head_count": shape.heads,
    }
    for name, size in sizes.items():
        writer.add_uint32(f"clip.vision.{name}", size)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", shape.eps)
    writer.add_array("clip.vision.image_mean", [0.5] * 3)
    writer.add_array("clip.vision.image_std", [0.5] * 3)


def main() -> None:
    """Export the checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("nano/out/vision"))
    parser.add_argument("--to", type=Path, default=Path("nano/out/vision/mmproj-glimmer-nano.gguf"))
    parser.add_argument("--f32", action="store_true", help="store matrices in f32 instead of q8_0")
    options = parser.parse_args()
    options.to.parent.mkdir(parents=True, exist_ok=True)
    export(load_eye(options.out / "eye.pt"), options.to, not options.f32)
    print(f"{options.to}: {options.to.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
