"""The Dockerfiles copy what is there and install what pyproject.toml offers."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = ["Dockerfile", "Dockerfile.cuda"]


def instructions(name):
    """(instruction, rest) of each line, continued lines joined, comments gone."""
    lines = [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def copied(name):
    """What is copied from the project, each with the line's target."""
    lines = [rest.split() for instruction, rest in instructions(name) if instruction == "COPY"]
    return [(source, words[-1]) for words in lines for source in words[:-1]]


@pytest.mark.parametrize("name", FILES)
def test_what_is_copied_exists_and_is_not_ignored(name):
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored
    assert len(copied(name)) >= 6
    for source, _ in copied(name):
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored, source


@pytest.mark.parametrize("name", FILES)
def test_the_build_has_all_that_the_package_is_made_of(name):
    sources = {source for source, _ in copied(name)}
    needed = {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "lifeline", "training", "constraints.txt"}
    assert needed <= sources


@pytest.mark.parametrize("name", FILES)
def test_pip_installs_extras_that_exist_by_the_pinned_versions(name):
    pips = [rest for instruction, rest in instructions(name) if instruction == "RUN" and "pip install" in rest]
    extras = {e for line in pips for group in re.findall(r"/src\[([\w,]+)\]", line) for e in group.split(",")}
    assert extras
    assert extras <= set(PROJECT["optional-dependencies"])
    assert all("-c /src/constraints.txt" in line for line in pips)


@pytest.mark.parametrize("name", FILES)
def test_the_container_runs_the_command_as_an_ordinary_user(name):
    steps = instructions(name)
    users = [rest for instruction, rest in steps if instruction == "USER"]
    assert users == ["lifeline"]
    (entry,) = [rest for instruction, rest in steps if instruction == "ENTRYPOINT"]
    assert entry.strip('[]"') in PROJECT["scripts"]


def test_the_cpu_image_takes_torch_from_the_index_of_cpu_builds():
    (line,) = [rest for _, rest in instructions("Dockerfile") if rest.endswith(" torch")]
    assert "TORCH_INDEX" in line
