"""What every test gets: one hypothesis profile, and a guard against global state that leaks out of a test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# No deadline: the first call of a function may build tables. In CI the examples are the same in every run.
settings.register_profile(
    "wonderland", deadline=None, max_examples=50, derandomize=bool(os.environ.get("CI")), print_blob=True
)
settings.load_profile("wonderland")
os.environ["WONDERLAND_CACHE"] = "off"  # tests neither use nor leave compiled code in the user's cache


def leaked_state() -> list[str]:
    """What the package's state in this context holds beyond a fresh one, as `name = value`.

    Looks only at modules that are imported already: a test that never imports the package cannot leak.
    """
    context = sys.modules.get("wonderland.core.context")
    if context is None:
        return []

    def held(state: Any, modules: Any, where: Any) -> dict[str, Any]:
        names = ("backend", "debug", "grad_enabled", "strict_broadcast")
        settings = {name: getattr(state.settings, name) for name in names}
        own = {name: getattr(state, name) for name in ("plain", "scope", "trace")}
        return settings | own | {"modules": modules, "pass": where}

    now = held(context.current(), tuple(context.modules.called), context.current_pass.get())
    fresh = held(context.State(), (), context.Pass())
    return [f"{name} = {value!r}" for name, value in sorted(now.items()) if value != fresh[name]]


@pytest.fixture(autouse=True)
def no_leaked_state(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves the state changed, and not the innocent ones that run after it."""
    random = sys.modules.get("wonderland.random")
    if random is not None:
        random.seed(0)  # draws without a key do not depend on the tests that ran before
    before = leaked_state()
    yield
    if not before and (after := leaked_state()):
        pytest.fail(f"{request.node.name} leaks global state: {', '.join(after)}")
