"""Name the folder of what outlives a driver: locks, logs of builds."""

import os
from pathlib import Path

from pipeline.sandbox.protocol import SandboxBrokenError


def state_folder() -> Path:
    """Return a folder of this user alone, the same for all drivers.

    Raises:
        SandboxBrokenError: somebody else has taken its name.
    """
    # Not where this process has its own temporary folders, which go with it.
    folder = Path(os.environ.get("TMPDIR") or "/tmp", f"regrow-docker-{os.getuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise SandboxBrokenError(f"{folder} belongs to another user; remove it, or set TMPDIR")
    return folder
