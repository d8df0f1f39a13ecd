"""Keys that llama.cpp reads in every network and that Glimmer has no further use for."""

from engine.gguf.file import ValueType
from engine.gguf.keys import CHOOSE_GLIMMER, Keys, printable

_MUST_BE_ZERO = (
    "nextn_predict_layers",
    "pooling_type",
    "expert_count",
    "expert_used_count",
    "expert_group_count",
    "expert_group_used_count",
)
_MUST_BE_FINITE = (
    "rope.freq_base_swa",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.alpha",
)


def check_network(keys: Keys, width: int, head: int) -> None:
    """Check what llama.cpp asserts on or what would make its arithmetic go wrong. Raises ModelError."""
    keys.real("attention.layer_norm_rms_epsilon", 0.0, 1.0)
    keys.real("rope.freq_base", 1.0, 1e12)
    rotated = keys.optional(keys.full("rope.dimension_count"), ValueType.UINT32, head)
    if not 2 <= rotated <= head or rotated % 2:
        keys.fail(f"It rotates {rotated} of {head} numbers a head, which is impossible.")
    keys.equal("rope.dimension_count_swa", rotated)
    for short in ("attention.value_length", "attention.key_length_swa", "attention.value_length_swa"):
        keys.equal(short, head)
    keys.equal("embedding_length_out", width)
    for short in _MUST_BE_ZERO:
        keys.equal(short, 0)
    for short in _MUST_BE_FINITE:
        name = keys.full(short)
        if not 0.0 <= keys.optional(name, ValueType.FLOAT32, 0.0) <= 1e12:
            keys.fail(f"Its key {name} is not a usable number.")
    scaling = keys.optional(keys.full("rope.scaling.type"), ValueType.STRING, "none")
    if scaling not in ("none", "linear"):
        keys.fail(f"Its position scaling {printable(scaling)!r} is not supported.", CHOOSE_GLIMMER)
    if keys.get(keys.full("classifier.output_labels")):
        keys.fail("It is a classifier, not a model that writes text.", CHOOSE_GLIMMER)
