"""A populated file of the first schema, and the releases that come after this one."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEXT = Path(__file__).parent / "versions"

Run = Callable[..., subprocess.CompletedProcess[str]]
