"""Where pi, oh-my-pi and xcsh keep their sessions, and where one is written for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessiondb.formats import default_locations
from sessiondb.formats.pi.places import OH_MY_PI, PI, XCSH


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    temporary = tmp_path / "temporary"
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))
    (tmp_path / "home" / "tea").mkdir(parents=True)
    return tmp_path / "home"


def test_every_place_of_the_programs_is_searched(home: Path) -> None:
    env = {"HOME": str(home), "XDG_DATA_HOME": "/data", "PI_CODING_AGENT_DIR": "/own"}
    places = default_locations(env, formats=["pi"])
    assert places[:2] == [Path("/own"), home / ".pi/agent"]
    for command, folder in (("omp", ".omp"), ("xcsh", ".xcsh")):
        assert {
            Path("/data", command),
            Path("/data", command, "profiles"),
            home / folder / "agent",
            home / folder / "profiles",
        } <= set(places)
    assert default_locations({}, formats=["pi"]) == []
    env = {"HOME": str(home), "PI_CONFIG_DIR": ".mine"}
    assert home / ".mine/agent" in default_locations(env, formats=["pi"])


def test_the_folder_of_a_directory_is_named_as_each_program_does(home: Path) -> None:
    env = {"HOME": str(home)}
    names = {
        str(home / "tea"): "-tea",
        str(home): "-",
        str(home.parent / "temporary" / "a" / "b"): "-tmp-a-b",
        str(home.parent / "temporary"): "-tmp",
        "/srv/tea": "--srv-tea--",
    }
    for directory, name in names.items():
        for program in (OH_MY_PI, XCSH):
            folder = home / program.folder / "agent" / "sessions" / name
            assert program.folder_of(directory, env) == folder
    folder = home / ".pi" / "agent" / "sessions" / "--srv-tea--"
    assert PI.folder_of("/srv/tea", env) == folder

    # A link to a directory has the folder of that directory.
    (home.parent / "link").symlink_to(home / "tea")
    assert OH_MY_PI.folder_of(str(home.parent / "link"), env).name == "-tea"


def test_profiles_and_data_folders_are_used_as_oh_my_pi_does(home: Path) -> None:
    data = home / "data"
    env = {"HOME": str(home), "XDG_DATA_HOME": str(data)}
    assert OH_MY_PI.sessions_folder(env) == home / ".omp/agent/sessions"
    assert OH_MY_PI.sessions_folder(env | {"PI_CODING_AGENT_DIR": "/own"}) == Path(
        "/own/sessions"
    )

    (data / "omp").mkdir(parents=True)
    assert OH_MY_PI.sessions_folder(env) == data / "omp/sessions"
    env |= {"OMP_PROFILE": "office", "PI_CODING_AGENT_DIR": "/own"}
    assert OH_MY_PI.sessions_folder(env) == home / ".omp/profiles/office/agent/sessions"
    (data / "omp/profiles/office").mkdir(parents=True)
    assert OH_MY_PI.sessions_folder(env) == data / "omp/profiles/office/sessions"

    env |= {"PI_CODING_AGENT_SESSION_DIR": "/all"}
    assert OH_MY_PI.folder_of("/srv/tea", env) == Path("/all")
