import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from skein_server import STORIES  # noqa: E402


@pytest.fixture(scope="session")
def stories():
    """The real small model; skipped where the shared data is absent, an error in CI."""
    if not STORIES.exists():
        if os.environ.get("CI"):
            pytest.fail(f"no {STORIES}")
        pytest.skip(f"needs {STORIES}")
    return STORIES
