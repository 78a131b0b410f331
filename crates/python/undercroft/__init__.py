"""XFS volumes in images and disks: read and changed without a mount, without root.

    >>> import undercroft
    >>> with undercroft.format("disk.img", 300 << 20) as fs:
    ...     fs.makedirs("/etc/app")
    ...     fs.write_text("/etc/app/name", "first\\n")
    >>> with undercroft.open("disk.img") as fs:
    ...     fs.listdir("/etc"), fs.read_text("/etc/app/name")
    (['app'], 'first\\n')

Paths are text or bytes, from the root of the volume. Errors are OSError, with the classes that the os
module has for them: FileNotFoundError, IsADirectoryError, and so on. All of it may be used by several
threads at once; calls that wait let other threads run.
"""

from __future__ import annotations

import os
import typing

from . import undercroft_native as _native
from ._deleted import DeletedFile
from ._file_system import DirEntry, FileSystem

__version__ = _native.__version__
__all__ = ["DeletedFile", "DirEntry", "FileSystem", "Finding", "check", "deleted", "format", "open"]


def open(
    image,
    *,
    writable: bool = False,
    partition: str | int | None = None,
    lv: str | None = None,
    offset: int | None = None,
    keys: typing.Iterable[str | bytes] = (),
    raw: bool = False,
    replay: bool = True,
) -> FileSystem:
    """Opens the volume in an image, and returns a FileSystem.

    image      a path, or a description of a device as the command takes it (nbd://host/export,
               'stripe:64k(a.img,b.img)'), or a file object with seek and read, and write and flush
               if it is to be changed
    writable   let it be changed, through its journal; no one else can open the image then
    partition  number, name or label of the partition that the volume is in; without it the only
               XFS volume is found by itself
    lv         the logical volume that it is in, as "group/volume"
    offset     it starts at this byte
    keys       passphrases of LUKS containers, as bytes or text
    raw        take the image as the bytes that it is, and not as a format
    replay     the journal of a volume that was not unmounted counts: it is replayed, in memory if
               the volume is only read
    """
    place = _place(partition, lv, offset, keys)
    if hasattr(image, "seek") and hasattr(image, "read"):
        return FileSystem(_native.open_object(image, place, writable, replay))
    return FileSystem(_native.open_image(os.fspath(image), raw, place, writable, replay))


def _place(partition, lv, offset, keys):
    return {
        "partition": None if partition is None else str(partition),
        "logical": lv,
        "offset": offset,
        "keys": [os.fsencode(key) for key in keys],
    }


def deleted(
    image, *, partition=None, lv=None, offset=None, keys=(), raw: bool = False
) -> list[DeletedFile]:
    """Looks for removed files, and returns a list of DeletedFile. Nothing is written.

    Arguments are as for open. An OSError says why nothing can be found.
    """
    found = _native.deleted(os.fspath(image), raw, _place(partition, lv, offset, keys))
    return [DeletedFile(found, index, about) for index, about in enumerate(found.files())]


class Finding(typing.NamedTuple):
    """Something that check found."""

    is_error: bool
    text: str


def check(
    image, *, partition=None, lv=None, offset=None, keys=(), raw: bool = False
) -> list[Finding]:
    """Checks a volume, and returns a list of Finding, empty if nothing is wrong. Nothing is written.

    Arguments are as for open.
    """
    place = _place(partition, lv, offset, keys)
    is_clean, found = _native.check(os.fspath(image), raw, place)
    findings = [Finding(*finding) for finding in found]
    if not is_clean and not any(finding.is_error for finding in findings):
        findings.append(Finding(True, "not everything could be looked at"))
    return findings


def format(path: str | os.PathLike, size: int) -> FileSystem:
    """Makes a file of size bytes with an empty volume in it, and opens that for changes.

    There must be no file at the path. The shortest volume has 300 MiB, in a file with holes.
    """
    return FileSystem(_native.format(path, size))
