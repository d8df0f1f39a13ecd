"""What is planned for which memory, what is given up in which order, and that it is said."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.buffer_sizes import KvType, ModelFiles, Settings
from engine.errors import ModelError
from engine.gguf.drafter import DrafterMetadata
from engine.gguf.model import ModelMetadata, Shape, WeightSizes
from engine.gguf.projector import ProjectorMetadata
from engine.kv_planner import CPU_MARGIN, GPU_MARGIN, Plan, Wishes, plan
from engine.placement import Device
from engine.protocol import Sampling

GIB = 1024**3
VOCABULARY = 202048
WIDTH = 6656
FOR_24_GB = 16_756_681_056
FOR_32_GB = 19_653_957_984
HEADER = 13_000_000
EMBEDDING = VOCABULARY * WIDTH // 256 * 144
HEAD = VOCABULARY * WIDTH // 256 * 210


def model(file_bytes: int, head: int = 128) -> ModelMetadata:
    local = tuple((layer + 1) % 4 != 0 for layer in range(52))
    layer = (file_bytes - HEADER - EMBEDDING - HEAD) // 52
    return ModelMetadata(
        path=Path("model.gguf"),
        name="Muse Glimmer 30B",
        is_demo=False,
        context_length=131072,
        shape=Shape(52, WIDTH, 19968, 32, 2, head, 2048, local),
        vocabulary_size=VOCABULARY,
        special_ids={},
        chat_template="",
        sampling=Sampling(),
        weights=WeightSizes(EMBEDDING, (layer,) * 52, HEAD),
    )


DRAFTER = DrafterMetadata(
    path=Path("drafter.gguf"),
    name="Drafter",
    shape=Shape(5, WIDTH, 19968, 32, 8, 128, 2048, (True,) * 5),
    block=16,
    target_layers=(2, 14, 26, 38, 50),
    mask_id=201818,
    vocabulary_size=VOCABULARY,
    weights=WeightSizes(0, (1_631_205_312 // 5,) * 5, 0),
    has_embedding=False,
    has_head=False,
)
PROJECTOR = ProjectorMetadata(Path("mmproj.gguf"), 1_400_328_928, 1536, 8960, 50)
FILES = ModelFiles(model(FOR_24_GB), DRAFTER, PROJECTOR)


def machine(gpu: float, ram: float = 28.0, is_shared: bool = False) -> list[Device]:
    """A machine with so many GiB free on its one GPU and in main memory."""
    cpu = Device("CPU", "cpu", 64 * GIB, int(ram * GIB))
    return [Device("GPU", "gpu", int(gpu * GIB) + GIB, int(gpu * GIB), is_shared), cpu] if gpu else [cpu]


def planned(gpu: float, ram: float = 28.0, wishes: Wishes | None = None) -> Settings:
    return plan(FILES, machine(gpu, ram), wishes).settings


def has_everything(found: Plan) -> bool:
    now = found.settings
    return (now.context, now.gpu_layers, now.drafter, now.vision) == (131072, 53, True, "gpu")


@pytest.mark.parametrize(
    ("file_bytes", "free"),
    [(FOR_24_GB, 23.6), (FOR_24_GB, 22.0), (FOR_24_GB, 21.0), (FOR_32_GB, 31.0), (FOR_32_GB, 24.0)],
)
def test_a_usual_device_gets_everything(file_bytes: int, free: float) -> None:
    found = plan(ModelFiles(model(file_bytes), DRAFTER, PROJECTOR), machine(free))
    assert has_everything(found)
    assert (found.settings.kv_type, found.settings.ubatch) == ("f16", 512)
    assert found.settings.image_tokens == 1024
    assert found.given_up == ()
    assert "131,072 tokens" in found.summary


def test_the_weights_of_the_30b_come_out_as_measured_elsewhere() -> None:
    found = plan(FILES, machine(23.0))
    weights = next(buffer for buffer in found.buffers if (buffer.kind, buffer.device) == ("weights", "GPU"))
    compute = next(buffer for buffer in found.buffers if (buffer.kind, buffer.device) == ("compute", "GPU"))
    assert weights.nbytes / 1024**2 == pytest.approx(15246, abs=2)
    assert compute.nbytes / 1024**2 == pytest.approx(274, rel=0.1)


def test_things_are_given_up_from_the_least_missed_to_the_most() -> None:
    assert (planned(20.6).ubatch, planned(20.6).kv_type) == (256, "f16")
    assert planned(20.2).kv_type == "q8_0"
    assert planned(20.2).context == 131072
    assert planned(19.5).context == 98304
    assert planned(19.5).vision == "gpu"
    assert planned(19.0).vision == "cpu"
    assert planned(19.0).context == 131072
    assert planned(17.5).drafter
    assert planned(17.5).context == 65536
    assert not planned(17.0).drafter
    assert planned(17.0).gpu_layers == 53
    assert planned(16.0).context == 65536
    assert planned(14.0).gpu_layers in range(40, 53)
    assert planned(14.0).context >= 32768
    assert planned(1.0).gpu_layers == 0


def test_a_machine_without_a_gpu() -> None:
    found = plan(FILES, machine(0, ram=30))
    assert (found.settings.gpu_layers, found.settings.vision) == (0, "cpu")
    assert found.settings.context == 131072
    assert {buffer.device for buffer in found.buffers} == {"CPU"}


def test_memory_that_gpu_and_cpu_share_is_counted_once_for_each() -> None:
    assert has_everything(plan(FILES, machine(22, ram=30, is_shared=True)))
    tight = plan(FILES, machine(22, ram=20, is_shared=True))
    assert not has_everything(tight)
    assert sum(buffer.nbytes for buffer in tight.buffers) + CPU_MARGIN <= 20 * GIB


def test_what_was_given_up_is_said_with_what_would_bring_it_back() -> None:
    found = plan(FILES, machine(19.5))
    said = " ".join(found.given_up)
    assert "98,304 tokens instead of 131,072" in said
    assert "q8_0 instead of f16" in said
    assert "comes back with 0.2 GiB more on GPU" in said
    assert "drafter" not in said
    said = " ".join(plan(FILES, machine(14.0)).given_up)
    assert "of 53 layers" in said
    assert "drafter is not used" in said
    assert "Images are read on the CPU" in said


def test_the_named_amount_is_enough() -> None:
    assert planned(19.5).context < 131072
    assert planned(19.7).context == 131072


def test_what_was_asked_for_is_kept() -> None:
    wishes = Wishes(context=131072, drafter=True)
    found = planned(16.0, wishes=wishes)
    assert (found.context, found.drafter) == (131072, True)
    assert found.gpu_layers < 53
    assert planned(20.0, wishes=Wishes(kv_type="f16")).kv_type == "f16"
    assert planned(12.0, wishes=Wishes(ubatch=512)).ubatch == 512
    assert planned(23.0, wishes=Wishes(gpu_layers=10)).gpu_layers == 10
    assert planned(23.0, wishes=Wishes(gpu_layers=-1)).gpu_layers == 53
    assert planned(23.0, wishes=Wishes(gpu_layers=0)).vision == "cpu"


def test_what_was_not_wanted_is_not_loaded_and_not_mourned() -> None:
    found = plan(FILES, machine(20.0), Wishes(drafter=False, vision=False))
    assert (found.settings.drafter, found.settings.vision) == (False, "off")
    assert found.given_up == ()
    kinds = {buffer.kind for buffer in found.buffers}
    assert not any(kind.startswith(("drafter", "vision")) for kind in kinds)


def test_no_more_context_than_the_model_has_and_no_larger_images_than_the_projector_reads() -> None:
    found = plan(FILES, machine(23.0), Wishes(context=1 << 20), image_tokens=1 << 20)
    assert (found.settings.context, found.settings.image_tokens) == (131072, 4096)


def test_too_little_memory_is_said_in_words() -> None:
    with pytest.raises(ModelError) as caught:
        plan(FILES, machine(0, ram=12))
    assert "does not fit" in caught.value.what
    assert "GiB more on CPU" in caught.value.why
    assert "4,096 tokens" in caught.value.why
    with pytest.raises(ModelError, match="Leaving more of the settings"):
        plan(FILES, machine(0, ram=18), Wishes(context=131072, drafter=True))


def test_heads_that_q8_0_cannot_store_stay_in_f16() -> None:
    files = ModelFiles(model(FOR_24_GB, head=120))
    assert plan(files, machine(17.0)).settings.kv_type == "f16"
    found = plan(files, machine(23.0), Wishes(kv_type="q8_0"))
    assert found.settings.kv_type == "f16"
    assert "cannot be stored in q8_0" in found.given_up[0]


free = st.floats(0.0, 40.0, allow_nan=False)
maybe_wishes = st.builds(
    Wishes,
    context=st.none() | st.integers(256, 140000),
    kv_type=st.none() | st.sampled_from(["f16", "q8_0"]),
    ubatch=st.none() | st.sampled_from([32, 512, 2048]),
    gpu_layers=st.none() | st.integers(-1, 60),
    drafter=st.none() | st.booleans(),
    vision=st.none() | st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(gpu=free, ram=free, is_shared=st.booleans(), wishes=maybe_wishes)
def test_a_plan_always_fits_and_keeps_the_wishes(
    gpu: float, ram: float, is_shared: bool, wishes: Wishes
) -> None:
    devices = machine(gpu, ram, is_shared)
    try:
        found = plan(FILES, devices, wishes)
    except ModelError as error:
        assert error.todo
        return
    for device in devices:
        margin = GPU_MARGIN if device.kind == "gpu" else CPU_MARGIN
        assert not found.on(device.name) or found.on(device.name) + margin <= device.free
    now = found.settings
    kv_type: KvType = wishes.kv_type or now.kv_type
    assert now.kv_type == kv_type
    assert now.context == min(wishes.context or now.context, 131072)
    assert now.ubatch == (wishes.ubatch or now.ubatch)
    assert wishes.drafter in (None, now.drafter)
    assert wishes.vision in (None, now.vision != "off")


@settings(max_examples=25, deadline=None)
@given(gpu=st.floats(0.0, 22.0), more=st.floats(0.0, 8.0))
def test_more_memory_never_costs_a_layer_or_the_drafter(gpu: float, more: float) -> None:
    small, large = planned(gpu, 40.0), planned(gpu + more, 40.0)
    if small.gpu_layers:
        assert large.gpu_layers >= small.gpu_layers
        assert large.drafter >= small.drafter
