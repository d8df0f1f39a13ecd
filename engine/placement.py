"""The memories of a machine, and where llama.cpp puts each layer of a network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Device:
    """Memory that buffers can lie in. `free` is what Glimmer may take, in bytes.

    `is_shared` marks a GPU that works in main memory: what lies there counts against both devices.
    """

    name: str
    kind: Literal["gpu", "cpu"]
    total: int
    free: int
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """The main memory and the GPUs in use, and how many layers go to the latter."""

    host: str
    gpus: tuple[Device, ...]
    gpu_layers: int

    @classmethod
    def of(cls, devices: Sequence[Device], gpu_layers: int) -> "Machine":
        """The machine as a network with so many layers on the GPUs uses it. One device is the CPU."""
        host = next(device.name for device in devices if device.kind == "cpu")
        gpus = tuple(device for device in devices if device.kind == "gpu") if gpu_layers > 0 else ()
        return cls(host, gpus, gpu_layers if gpus else 0)

    def whole(self) -> "Machine":
        """The same machine for a network that goes to the GPUs as a whole."""
        return Machine(self.host, self.gpus, 1 << 20 if self.gpus else 0)

    def places(self, layers: int) -> list[str]:
        """The device of each layer, and last that of the head: the last ones lie on the GPUs."""
        count = min(self.gpu_layers, layers + 1)
        return [self.host] * (layers + 1 - count) + [self._gpu(number / count) for number in range(count)]

    def _gpu(self, share: float) -> str:
        """The GPU of the layer at `share` of the way: each takes layers in proportion to its free memory."""
        total = sum(gpu.free for gpu in self.gpus) or 1
        reached = 0.0
        for gpu in self.gpus:
            reached += gpu.free / total
            if share < reached:
                return gpu.name
        return self.gpus[-1].name
