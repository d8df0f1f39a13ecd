"""The page of settings names every key there is."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from glimmer_tui.config import AgentSettings, Config, ModelSettings, ProjectAgentSettings

PAGE = (Path(__file__).parents[1] / "docs" / "settings.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("table", [Config, ModelSettings, AgentSettings, ProjectAgentSettings])
def test_every_key_is_on_the_page(table: type[BaseModel]) -> None:
    tables = {"model", "agent"}
    missing = [name for name in table.model_fields if name not in tables and f"`{name}`" not in PAGE]
    assert not missing
