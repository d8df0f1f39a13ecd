"""Choose how a model is loaded so that it fits: context, cache type, batch, layers, drafter and vision.

Everything is wanted: the model's whole context in f16, a batch of 512, all layers on the GPU, the drafter
and images. Where memory lacks, it is given up in this order, the least missed first:

1. the batch: 256 tokens instead of 512; prompts are read a little slower
2. the cache type: q8_0 instead of f16, which halves the cache at hardly any loss
3. the context, down to 65,536 tokens: enough for long work, since old turns can be summarized
4. images on the GPU: they are read on the CPU instead, in a minute instead of a second
5. images
6. the drafter: answers are the same, and two to three times slower
7. the context, down to 32,768 tokens
8. layers on the GPU, one by one: everything becomes several times slower
9. the context, down to 4,096 tokens

Then, from the last to the first, what there turns out to be room for is taken back. What a person asked for
is never given up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.buffer_sizes import Q8_BLOCK, Buffer, KvType, ModelFiles, Settings, predict
from engine.errors import ModelError
from engine.placement import Device

WANTED_BATCH = 512
SMALLER_BATCH = 256
WANTED_IMAGE_TOKENS = 1024
MOST_IMAGE_TOKENS = 4096
SMALLEST_CONTEXT = 256
OUTPUTS = 32
"""Rows of scores of one decode: enough to check the longest draft."""

GPU_MARGIN = 384 * 1024**2
"""Bytes that stay free on a GPU: for its driver, its kernels and the screen."""

CPU_MARGIN = 512 * 1024**2
"""Bytes that stay free in main memory: for Glimmer itself and its tools."""

_LONG_CONTEXTS = (98304, 65536)
_MIDDLE_CONTEXTS = (49152, 32768)
_SHORT_CONTEXTS = (24576, 16384, 8192, 4096)
_BEST_FIRST = ("f16", "q8_0", "gpu", "cpu", "off")

Part = Literal["ubatch", "kv_type", "context", "vision", "drafter", "gpu_layers"]

_PARTS: tuple[Part, ...] = ("gpu_layers", "drafter", "vision", "context", "kv_type", "ubatch")
"""The most missed first."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person asked for. None leaves the choice to the plan.

    `drafter` and `vision` True mean that they are not given up; False, that they are not used.
    `gpu_layers` -1 is all of them.
    """

    context: int | None = None
    kv_type: KvType | None = None
    ubatch: int | None = None
    gpu_layers: int | None = None
    drafter: bool | None = None
    vision: bool | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How to load the model, what it will take, and in sentences what was given up for it."""

    settings: Settings
    buffers: tuple[Buffer, ...]
    summary: str
    given_up: tuple[str, ...]

    def on(self, device: str) -> int:
        """Bytes predicted on a device."""
        return sum(buffer.nbytes for buffer in self.buffers if buffer.device == device)


def plan(
    files: ModelFiles,
    devices: Sequence[Device],
    wishes: Wishes | None = None,
    image_tokens: int = WANTED_IMAGE_TOKENS,
) -> Plan:
    """The best settings that fit. One of the devices is the CPU. Raises ModelError where none fit."""
    return _Planner(files, tuple(devices), wishes or Wishes()).plan(image_tokens)


@dataclass(frozen=True, slots=True)
class _Value:
    """A part of the settings, and a value for it."""

    part: Part
    value: int | str

    @classmethod
    def of(cls, settings: Settings, part: Part) -> "_Value":
        return cls(part, getattr(settings, part))

    @property
    def rank(self) -> int:
        """How good it is; only values of the same part compare."""
        return -_BEST_FIRST.index(self.value) if isinstance(self.value, str) else self.value

    def put_into(self, settings: Settings) -> Settings:
        return replace(settings, **{self.part: self.value})

    def __lt__(self, other: "_Value") -> bool:
        return self.rank < other.rank


class _Planner:
    def __init__(self, files: ModelFiles, devices: tuple[Device, ...], wishes: Wishes) -> None:
        self._files = files
        self._devices = devices
        self._wishes = wishes
        self._has_gpu = any(device.kind == "gpu" for device in devices)
        self._all_layers = files.model.shape.layers + 1

    def plan(self, image_tokens: int) -> Plan:
        wanted = settings = self._wanted(max(1, min(image_tokens, MOST_IMAGE_TOKENS)))
        taken: list[_Value] = []
        steps = self._steps()
        while missing := self._missing(settings):
            step = next(steps, None)
            if step is None:
                raise self._no_room(settings, missing)
            before = _Value.of(settings, step.part)
            if step < before:
                taken.append(before)
                settings = step.put_into(settings)
        settings = self._take_back(settings, taken)
        buffers = predict(self._files, settings, self._devices)
        plan = Plan(settings, buffers, "", tuple(self._sentences(wanted, settings)))
        return replace(plan, summary=self._summary(plan))

    def _wanted(self, image_tokens: int) -> Settings:
        wishes, most = self._wishes, self._files.model.context_length
        layers = self._all_layers if wishes.gpu_layers in (None, -1) else wishes.gpu_layers or 0
        layers = min(layers, self._all_layers) if self._has_gpu else 0
        has_vision = self._files.projector is not None and wishes.vision is not False
        return Settings(
            context=max(SMALLEST_CONTEXT, min(wishes.context or most, most)),
            kv_type=(wishes.kv_type or "f16") if self._can_quantize() else "f16",
            ubatch=wishes.ubatch or WANTED_BATCH,
            outputs=OUTPUTS,
            gpu_layers=layers,
            drafter=self._files.drafter is not None and wishes.drafter is not False,
            vision=("gpu" if layers else "cpu") if has_vision else "off",
            image_tokens=image_tokens,
        )

    def _can_quantize(self) -> bool:
        """Whether q8_0 blocks divide the heads of all networks; llama.cpp refuses the cache otherwise."""
        files = self._files
        shapes = [files.model.shape, *([files.drafter.shape] if files.drafter else [])]
        return not any(shape.head % Q8_BLOCK for shape in shapes)

    def _steps(self) -> Iterator[_Value]:
        """What is given up, in order; what was asked for is left out."""
        wishes = self._wishes
        if wishes.ubatch is None:
            yield _Value("ubatch", SMALLER_BATCH)
        if wishes.kv_type is None and self._can_quantize():
            yield _Value("kv_type", "q8_0")
        yield from self._contexts(_LONG_CONTEXTS)
        yield _Value("vision", "cpu")
        if wishes.vision is not True:
            yield _Value("vision", "off")
        if wishes.drafter is not True:
            yield _Value("drafter", False)
        yield from self._contexts(_MIDDLE_CONTEXTS)
        if wishes.gpu_layers is None:
            for count in reversed(range(self._all_layers)):
                yield _Value("gpu_layers", count)
        yield from self._contexts(_SHORT_CONTEXTS)

    def _contexts(self, sizes: Sequence[int]) -> Iterator[_Value]:
        if self._wishes.context is None:
            for size in sizes:
                yield _Value("context", size)

    def _take_back(self, settings: Settings, taken: list[_Value]) -> Settings:
        """Undo each step, the last first, where there is room for it after all."""
        for better in reversed(taken):
            tried = better.put_into(settings)
            if _Value.of(settings, better.part) < better and not self._missing(tried):
                settings = tried
        return settings

    def _missing(self, settings: Settings) -> dict[str, int]:
        """The bytes that lack, by device, where they do."""
        used = dict.fromkeys((device.name for device in self._devices), 0)
        host = next(device.name for device in self._devices if device.kind == "cpu")
        shared = {device.name for device in self._devices if device.is_shared} - {host}
        for buffer in predict(self._files, settings, self._devices):
            used[buffer.device] += buffer.nbytes
            if buffer.device in shared:
                used[host] += buffer.nbytes
        missing: dict[str, int] = {}
        for device in self._devices:
            margin = GPU_MARGIN if device.kind == "gpu" else CPU_MARGIN
            if used[device.name] and (lack := used[device.name] + margin - device.free) > 0:
                missing[device.name] = lack
        return missing

    def _no_room(self, settings: Settings, missing: dict[str, int]) -> ModelError:
        todo = "Close other programs, or choose a smaller model file."
        if self._wishes != Wishes():
            todo += " Leaving more of the settings to Glimmer may help too."
        return ModelError(
            f"{self._files.model.name} does not fit into this machine's memory.",
            f"Even with {_tokens(settings.context)} of context and all else given up that was not asked for, "
            f"there is too little: {_amounts(missing)} would do.",
            todo,
        )

    def _sentences(self, wanted: Settings, settings: Settings) -> Iterator[str]:
        if self._wishes.kv_type == "q8_0" != settings.kv_type:
            yield "The cache is kept in f16: the heads of this model cannot be stored in q8_0."
        for part in _PARTS:
            best, now = _Value.of(wanted, part), _Value.of(settings, part)
            if now < best:
                missing = self._missing(best.put_into(settings))
                bring = f" It comes back with {_amounts(missing)}." if missing else ""
                yield _loss(part, wanted, settings) + bring

    def _summary(self, plan: Plan) -> str:
        settings = plan.settings
        layers = f"{settings.gpu_layers} of {self._all_layers} layers on the GPU"
        if not settings.gpu_layers:
            layers = "all layers on the CPU"
        elif settings.gpu_layers == self._all_layers:
            layers = "all layers on the GPU"
        parts = [f"{_tokens(settings.context)} of context in {settings.kv_type}", layers]
        parts.append("with drafter" if settings.drafter else "without drafter")
        parts.append("with images" if settings.vision != "off" else "without images")
        memory = (
            f"{_size(plan.on(device.name))} of the {_size(device.free)} free on {device.name}"
            for device in self._devices
            if plan.on(device.name)
        )
        return f"{', '.join(parts)}; it takes {' and '.join(memory)}."


def _loss(part: Part, wanted: Settings, settings: Settings) -> str:
    images = "not read: the projector did not fit" if settings.vision == "off" else "read on the CPU, slowly"
    layers = f"{settings.gpu_layers or 'none'} of {wanted.gpu_layers} layers"
    texts: dict[Part, str] = {
        "context": f"The context is {_tokens(settings.context)} instead of {wanted.context:,}.",
        "kv_type": "The cache is kept in q8_0 instead of f16, at hardly any loss.",
        "ubatch": f"Prompts are read {settings.ubatch} tokens at a time instead of {wanted.ubatch}.",
        "vision": f"Images are {images}.",
        "drafter": "The drafter is not used, so answers come more slowly; they are the same.",
        "gpu_layers": f"On the GPU there is room for {layers}, so everything is much slower.",
    }
    return texts[part]


def _tokens(count: int) -> str:
    return f"{count:,} tokens"


def _size(nbytes: int) -> str:
    return f"{nbytes / 1024**3:.1f} GiB" if nbytes >= 1024**3 else f"{nbytes / 1024**2:.0f} MiB"


def _amounts(missing: dict[str, int]) -> str:
    """What lacks, rounded up so that it is enough."""
    tenths = {name: -(-nbytes * 10 // 1024**3) for name, nbytes in missing.items()}
    return " and ".join(f"{count / 10} GiB more on {name}" for name, count in tenths.items())
