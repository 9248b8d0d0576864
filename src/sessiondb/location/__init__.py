"""Which database and which project, found without opening a database."""

from __future__ import annotations

from sessiondb.location import trust as trust
from sessiondb.location.config import Config as Config
from sessiondb.location.config import Price as Price
from sessiondb.location.config import config_path as config_path
from sessiondb.location.config import load_config as load_config
from sessiondb.location.database import Database as Database
from sessiondb.location.database import find_local as find_local
from sessiondb.location.database import init_local as init_local
from sessiondb.location.database import resolve as resolve
from sessiondb.location.directories import config_directory as config_directory
from sessiondb.location.directories import data_directory as data_directory
from sessiondb.location.directories import state_directory as state_directory
from sessiondb.location.git import remote_of as remote_of
from sessiondb.location.git import root_commit_of as root_commit_of
from sessiondb.location.git import stamp_of as stamp_of
from sessiondb.location.project import Place as Place
from sessiondb.location.project import project_at as project_at
