"""A disk in a file, whose power can be cut: ext4 on a loop device. Needs root, and a kernel with both."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# ext4 stops at once and loses what was not written to the device, its journal included.
_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125  # _IOR('X', 125, __u32)
_WITHOUT_FLUSH = 2


class LoopDisk:
    """A mounted disk; after `cut`, everything fails until `replug`, which shows what had reached the disk."""

    def __init__(self, image: Path, mount: Path) -> None:
        self._image, self.mount = image, mount

    def cut(self) -> None:
        """Cut the power: from here on nothing reaches the disk, and what had not is lost."""
        folder = os.open(self.mount, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
        finally:
            os.close(folder)

    def replug(self) -> None:
        """Mount a copy of what had reached the disk; whoever has files of the old one open keeps that."""
        self.unplug()
        copy = self._image.with_name(f"{self._image.stem}+{self._image.suffix}")
        _run("cp", "--sparse=always", str(self._image), str(copy))
        self._image.unlink()
        self._image = copy
        _run("mount", "-o", "loop", str(self._image), str(self.mount))

    def unplug(self) -> None:
        """Take the disk from where it is mounted."""
        _run("umount", "--lazy", str(self.mount))


@contextmanager
def loop_disk(folder: Path, megabytes: int = 64) -> Iterator[LoopDisk]:
    """Make and mount a disk below a folder; nothing of it is left mounted at the end."""
    image, mount = folder / "disk.img", folder / "disk"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    _run("mkfs.ext4", "-q", str(image))
    _run("mount", "-o", "loop", str(image), str(mount))
    disk = LoopDisk(image, mount)
    try:
        yield disk
    finally:
        disk.unplug()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
