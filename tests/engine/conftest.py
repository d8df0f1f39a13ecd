"""A tiny random model, written once a test session, and engines over it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from engine.cache import Cache
from engine.context import Context, ContextOptions
from engine.embedded import EmbeddedEngine
from engine.generator import Generator
from engine.gguf.model import read_model_file
from engine.llama import Model
from engine.loading import EngineOptions
from tests.engine.tiny_gguf import write_tiny

CONTEXT = 1024
BATCH = 64


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a random model: 4 layers, width 64, local window 64, one token a byte."""
    return write_tiny(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="session")
def model(tiny_model: Path) -> Iterator[Model]:
    """That model in memory."""
    loaded = Model(read_model_file(tiny_model), 0, None)
    yield loaded
    loaded.close()


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    """An empty cache of 1,024 tokens that reads 64 tokens a batch."""
    made = Context(model, ContextOptions(CONTEXT, BATCH, threads=1), None)
    yield made
    made.close()


@pytest.fixture
def generator(model: Model, context: Context) -> Generator:
    """A generator over an empty cache."""
    return Generator(Cache(context, model.vocabulary.size), model.vocabulary, model.metadata.sampling)


@pytest.fixture
def options(tmp_path: Path) -> EngineOptions:
    return EngineOptions(context_size=CONTEXT, threads=1, batch=BATCH, log_file=tmp_path / "llama.log")


@pytest.fixture
async def engine(tiny_model: Path, options: EngineOptions) -> AsyncIterator[EmbeddedEngine]:
    """The real engine over the tiny model; it loads on first use."""
    made = EmbeddedEngine(tiny_model, options)
    yield made
    await made.close()
