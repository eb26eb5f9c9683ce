"""Calibration files: one JSON file per provider, model and tier, in a folder that is committed.

Owns their names and what is said of a bad file. What stands in one is `analysis.calibration`'s.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from pytest_agentlatency.analysis.calibration import Calibration, from_dict, to_dict
from pytest_agentlatency.cassette import store


class CalibrationError(Exception):
    """A calibration file that can't be read: which, why, and what to do."""


def path_for(folder: Path, calibration: Calibration) -> Path:
    """The file of a calibration. A later one of the same provider, model and tier replaces it."""
    parts = filter(None, [calibration.provider, calibration.model, calibration.tier])
    return folder / (re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip("-.") + ".json")


def save(folder: Path, calibration: Calibration) -> Path:
    """Write a calibration, whole or not at all; the path."""
    path = path_for(folder, calibration)
    store.replace(path, (json.dumps(to_dict(calibration), indent=2) + "\n").encode())
    return path


def load(path: Path) -> Calibration:
    """The calibration of a file. CalibrationError when it isn't one."""
    try:
        return from_dict(dict(json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError) as error:
        msg = f"calibration {path} can't be used: {error}"
        raise CalibrationError(msg) from None


def load_all(folders: Iterable[Path]) -> tuple[Calibration, ...]:
    """Every calibration of these folders; none where a folder doesn't exist. CalibrationError for a bad file."""
    return tuple(load(path) for folder in folders for path in sorted(folder.glob("*.json")))
