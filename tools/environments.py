"""Runs tests in environments that differ from a developer's: other locales, no home folder,
warnings as errors, two runs on one cache.

python tools/environments.py NAME[,NAME ...] [ARGUMENT OF PYTEST ...]

`make test-environment ENVIRONMENT=c-locale` does the same with all tests, and every night has a job
for each row of ENVIRONMENTS. Several names are one environment, where their variables do not
contradict each other. Exit status: the greatest of pytest's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from warploom.core.user_folders import user_folder

ROOT = Path(__file__).parents[1]

UNLISTED_USER = 61_234
"""A number of a user that no list of users has."""


class Home(Enum):
    """The home folder of the tests."""

    OWN = auto()
    """That of whoever runs them."""
    READ_ONLY = auto()
    """A folder that they cannot write to, in which nothing is but the compiled code that earlier
    runs of whoever runs them have cached."""
    NONE = auto()
    """None: HOME is unset, and the user is on no list of users."""


@dataclass(frozen=True)
class Environment:
    """A row of the table: what an environment sets, and how many runs of pytest share it."""

    name: str
    variables: tuple[tuple[str, str], ...] = ()
    """What is set for pytest and for the processes that tests start."""
    locale: tuple[str, str] | None = None
    """The locale's name in the sources of localedef, and its encoding, where it has to be made."""
    home: Home = Home.OWN
    runs: int = 1
    """So many runs of pytest begin at once, with a cache of compiled code that is empty."""

    def and_also(self, other: Environment) -> Environment:
        """Returns the environment that has the properties of both. Raises SystemExit where they set
        one variable to two values."""
        ours, theirs = dict(self.variables), dict(other.variables)
        for variable in ours.keys() & theirs.keys():
            if ours[variable] != theirs[variable]:
                raise SystemExit(f"error: {self.name} and {other.name} both set {variable}")
        return Environment(
            f"{self.name},{other.name}",
            (*self.variables, *other.variables),
            self.locale or other.locale,
            max(self.home, other.home, key=lambda home: home.value),
            max(self.runs, other.runs),
        )


THIRD_PARTY_WARNINGS: tuple[str, ...] = ()
"""Warnings of other packages that are no errors, as PYTHONWARNINGS has them (a part of the message
from its beginning, the category, the module)."""

LOCALE = "en_US", "CP1252"

ENVIRONMENTS = (
    Environment("hash-seed", (("PYTHONHASHSEED", "random"),)),
    Environment(
        "warnings",
        (
            ("PYTHONDEVMODE", "1"),
            ("PYTHONWARNINGS", ",".join(("error", *THIRD_PARTY_WARNINGS))),
        ),
    ),
    Environment("c-locale", (("LC_ALL", "C"),)),
    Environment(
        "cp1252",
        (
            ("LC_ALL", ".".join(LOCALE)),
            ("PYTHONUTF8", "0"),
            ("PYTHONIOENCODING", "cp1252"),
        ),
        locale=LOCALE,
    ),
    Environment("read-only-home", home=Home.READ_ONLY),
    Environment("no-home", home=Home.NONE),
    Environment("two-runs", runs=2),
)
"""The environments, by what differs. Python's options are variables, since processes that tests
start have to have them as well: PYTHONDEVMODE is `-X dev`, PYTHONWARNINGS is `-W`."""


def main(arguments: Sequence[str]) -> int:
    """Runs pytest in the environment that the first argument names; returns the exit status."""
    if not arguments:
        raise SystemExit(f"usage: environments.py NAME[,NAME ...] ...: one of {_names()}")
    environment = find_environment(arguments[0])
    user = _user(environment.home)
    with tempfile.TemporaryDirectory(prefix="warploom-") as name:
        folder = Path(name)
        if user is not None:
            os.chown(folder, user, user)
        variables = _variables(environment, folder)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments[1:]]
        outputs = [folder / f"output-{number}" for number in range(1, environment.runs)]
        runs: list[subprocess.Popen[bytes]] = []
        try:
            for output in (None, *outputs):
                runs.append(_begin(command, variables, user, output))
            return max(run.wait() for run in runs)
        finally:
            for run in runs:
                if run.poll() is None:
                    run.kill()
                    run.wait()
            for output in outputs:
                print(
                    f"--- another run at the same time ---\n{output.read_text('utf-8', 'replace')}"
                )


def find_environment(names: str) -> Environment:
    """Returns the environment of a name, or that of several names separated by commas."""
    by_name = {one.name: one for one in ENVIRONMENTS}
    first, *others = names.split(",")
    for name in (first, *others):
        if name not in by_name:
            raise SystemExit(f"error: there is no environment {name!r}, only {_names()}")
    environment = by_name[first]
    for name in others:
        environment = environment.and_also(by_name[name])
    return environment


def _names() -> str:
    return ", ".join(one.name for one in ENVIRONMENTS)


def _user(home: Home) -> int | None:
    """Returns the user that the tests need, if it is another than this one: root can write to every
    folder, and only root can change to a user that no list has."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if home is Home.NONE and not is_root:
        raise SystemExit("error: no-home changes to another user, which only root may: use sudo")
    return UNLISTED_USER if is_root and home is not Home.OWN else None


def _variables(environment: Environment, folder: Path) -> dict[str, str]:
    """Returns the variables of an environment whose files are in a folder."""
    variables = {**os.environ, **dict(environment.variables)}
    if environment.locale is not None:
        variables["LOCPATH"] = str(_make_locale(*environment.locale, folder))
    if environment.runs > 1:
        variables["WARPLOOM_CACHE_DIR"] = str(folder / "cache")
    if environment.home is Home.OWN:
        return variables
    # What belongs to the tests and not to the user whose home is missing: folders of pytest and of
    # bytecode, and leave for git to read a repository of another user.
    variables |= {
        "TMPDIR": str(folder),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    for variable in [*variables]:
        if variable in ("HOME", "USER", "LOGNAME") or variable.startswith("XDG_"):
            del variables[variable]
    if environment.home is Home.READ_ONLY:
        variables["HOME"] = str(_make_read_only_home(folder))
    return variables


def _make_read_only_home(folder: Path) -> Path:
    """Makes a home folder for a user who can read all of it and write nothing. What this user's
    earlier runs compiled is in it."""
    home = folder / "home"
    cache = home / ".cache" / "warploom"
    cache.mkdir(parents=True)
    for file in user_folder("XDG_CACHE_HOME", ".cache").glob("warploom/*"):
        # A test that runs meanwhile may remove a file that is listed.
        with suppress(FileNotFoundError, IsADirectoryError):
            shutil.copyfile(file, cache / file.name)
    for path in (home, *home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    # PyOpenCL needs a cache of its own that it can write (pytools.persistent_dict).
    writable = home / ".cache" / "pytools"
    cache.parent.chmod(0o755)
    writable.mkdir()
    writable.chmod(0o777)
    cache.parent.chmod(0o555)
    return home


def _make_locale(name: str, encoding: str, folder: Path) -> Path:
    """Makes a locale and returns the folder that LOCPATH names. Raises SystemExit where glibc's
    sources of locales are missing."""
    place = folder / "locales"
    place.mkdir()
    command = ["localedef", "-i", name, "-f", encoding, str(place / f"{name}.{encoding}")]
    try:
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(
            f"error: localedef does not make {name}.{encoding}: install glibc's locales (apt-get"
            f" install locales)"
        ) from None
    return place


def _begin(
    command: Sequence[str], variables: dict[str, str], user: int | None, output: Path | None
) -> subprocess.Popen[bytes]:
    """Begins a run of pytest as a user, whose output goes to a file if one is named."""
    stream = None if output is None else output.open("wb")
    try:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=variables,
            stdout=stream,
            stderr=subprocess.STDOUT,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    except PermissionError:
        raise SystemExit(
            f"error: another user cannot run {sys.executable}: it, or a folder above it, is closed"
            f" to others"
        ) from None
    finally:
        if stream is not None:
            stream.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
