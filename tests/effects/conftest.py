"""Every test of this folder runs on each engine; one that uses ``contract`` with both façades."""

from __future__ import annotations

from engines import pytest_generate_tests  # noqa: F401  a hook of this folder
from facades import contract, session  # noqa: F401  fixtures
