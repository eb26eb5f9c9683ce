"""The file of accepted figures beside a cassette: small JSON, made to be read in a review.

Owns its name and what is said of a bad one. What stands in it is `budgets.baseline`'s.
"""

import json
from pathlib import Path

from pytest_agentlatency.budgets.baseline import Baseline, BaselineError, from_dict, to_dict
from pytest_agentlatency.cassette import store

SUFFIX = ".accepted.json"


def path_of(cassette: Path) -> Path:
    """Where the accepted figures of a cassette's test are."""
    return cassette.with_name(cassette.name.removesuffix(store.SUFFIX) + SUFFIX)


def read(path: Path) -> Baseline | None:
    """The accepted figures; None when there are none. BaselineError, naming the file, when it is none."""
    if not path.exists():
        return None
    try:
        return from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        msg = f"accepted figures {path} can't be used: {error}. Restore the file, or delete it and accept again."
        raise BaselineError(msg) from None


def write(path: Path, baseline: Baseline) -> None:
    """Keep accepted figures, whole or not at all."""
    store.replace(path, (json.dumps(to_dict(baseline), indent=2, ensure_ascii=False) + "\n").encode())
