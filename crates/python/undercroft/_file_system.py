"""A volume with the verbs of the modules os and shutil."""

from __future__ import annotations

import errno
import io
import os
import posixpath
import stat as modes
import time
import typing

from ._raw_file import RawFile

Path = typing.Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def _stat_result(status: typing.Any) -> os.stat_result:
    times = {"atime": status.accessed, "mtime": status.modified, "ctime": status.changed}
    seconds = [time // 10**9 for time in times.values()]
    values = (status.mode, status.number, 0, status.links, status.uid, status.gid, status.size)
    more = {f"st_{name}": time / 10**9 for name, time in times.items()}
    more.update({f"st_{name}_ns": time for name, time in times.items()})
    more.update(
        st_blksize=status.block_size,
        st_blocks=status.blocks,
        st_rdev=os.makedev(status.major, status.minor),
    )
    return os.stat_result((*values, *seconds), more)


class DirEntry:
    """A name in a directory with the status of its file, as os.scandir gives them."""

    __slots__ = ("_fs", "_status", "name", "path")

    def __init__(self, fs, name, path, status):
        self._fs, self.name, self.path, self._status = fs, name, path, status

    def _mode(self, follow):
        if follow and self.is_symlink():
            try:
                return self.stat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                return 0
        return self._status.mode

    def inode(self) -> int:
        return self._status.number

    def is_symlink(self) -> bool:
        return modes.S_ISLNK(self._status.mode)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return modes.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return modes.S_ISREG(self._mode(follow_symlinks))

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        if follow_symlinks and self.is_symlink():
            return self._fs.stat(self.path)
        return _stat_result(self._status)

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<undercroft.DirEntry {self.name!r}>"


class FileSystem:
    """An open volume. Made by undercroft.open and undercroft.format."""

    def __init__(self, native):
        self._native = native
        self._is_closed = False

    @property
    def writable(self) -> bool:
        """Whether it was opened for changes."""
        return self._native.writable

    # Names.

    def listdir(self, path: Path = "/") -> list:
        """The names in a directory, sorted; bytes if the path is bytes."""
        return [entry.name for entry in self.scandir(path)]

    def scandir(self, path: Path = "/") -> list[DirEntry]:
        """The entries of a directory, sorted by name, with the status of each."""
        top: typing.Any = os.fspath(path)
        decode = (lambda name: name) if isinstance(top, bytes) else os.fsdecode
        entries = self._call(path, self._native.entries)
        entries.sort(key=lambda entry: entry[0])
        names = ((decode(name), status) for name, status in entries)
        return [DirEntry(self, name, posixpath.join(top, name), status) for name, status in names]

    def walk(
        self, top: Path = "/", topdown: bool = True, onerror=None, followlinks: bool = False
    ) -> typing.Iterator[tuple]:
        """As os.walk."""
        try:
            entries = self.scandir(top)
        except OSError as error:
            if onerror is not None:
                onerror(error)
            return
        directories = [entry for entry in entries if entry.is_dir()]
        files = [entry.name for entry in entries if not entry.is_dir()]
        names = [entry.name for entry in directories]
        links = {entry.name for entry in directories if entry.is_symlink()}
        if topdown:
            yield top, names, files
        for name in names:
            if followlinks or name not in links:
                yield from self.walk(posixpath.join(top, name), topdown, onerror, followlinks)
        if not topdown:
            yield top, names, files

    def find(self, path: Path = "/") -> list[tuple[typing.Any, os.stat_result]]:
        """All paths below a directory with their os.stat_result, in one call: fast for large trees."""
        path = os.fspath(path)
        decode = (lambda name: name) if isinstance(path, bytes) else os.fsdecode
        found = self._call(path, self._native.below)
        return [(decode(name), _stat_result(status)) for name, status in found]

    # Status.

    def stat(self, path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        """As os.stat."""
        return _stat_result(self._call(path, self._native.status, follow=follow_symlinks))

    def birthtime_ns(self, path: Path) -> int:
        """When a file was made, in nanoseconds since 1970."""
        return self._call(path, self._native.status).created

    def lstat(self, path: Path) -> os.stat_result:
        return self.stat(path, follow_symlinks=False)

    def _has_mode(self, path, is_kind, follow=True):
        try:
            return is_kind(self.stat(path, follow_symlinks=follow).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def exists(self, path: Path) -> bool:
        return self._has_mode(path, lambda mode: True)

    def isfile(self, path: Path) -> bool:
        return self._has_mode(path, modes.S_ISREG)

    def isdir(self, path: Path) -> bool:
        return self._has_mode(path, modes.S_ISDIR)

    def islink(self, path: Path) -> bool:
        return self._has_mode(path, modes.S_ISLNK, follow=False)

    def getsize(self, path: Path) -> int:
        return self.stat(path).st_size

    def readlink(self, path: Path):
        target = self._call(path, self._native.read_link)
        return target if isinstance(os.fspath(path), bytes) else os.fsdecode(target)

    def statvfs(self) -> os.statvfs_result:
        """Space and inodes, with the names of os.statvfs that a volume has."""
        block_size, blocks, free, inodes, free_inodes = self._call(None, self._native.usage)
        space = (block_size, block_size, blocks, free, free)
        names = (inodes + free_inodes, free_inodes, free_inodes, 0, 255)
        return os.statvfs_result((*space, *names))

    # Content.

    def open(
        self,
        path: Path,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> typing.IO:
        """As the open of Python. Without a buffer (buffering=0) reads and writes go to the volume at once."""
        is_text = "b" not in mode
        if "b" in mode and "t" in mode:
            raise ValueError(f"invalid mode: {mode!r}")
        if not is_text and (encoding or errors or newline):
            raise ValueError("binary mode takes no encoding, errors or newline")
        if is_text and buffering == 0:
            raise ValueError("text needs a buffer")
        raw: typing.Any = self._open_raw(path, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        size = 128 << 10 if buffering in (-1, 1) else buffering
        if raw.readable() and raw.writable():
            buffered: typing.Any = io.BufferedRandom(raw, size)
        elif raw.readable():
            buffered = io.BufferedReader(raw, size)
        else:
            buffered = io.BufferedWriter(raw, size)
        if not is_text:
            return buffered
        return io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)

    def _open_raw(self, path: Path, mode: str) -> RawFile:
        """A file without a buffer; mode is r, w, a or x, and perhaps +."""
        if mode not in ("r", "r+", "w", "w+", "a", "a+", "x", "x+"):
            raise ValueError(f"invalid mode: {mode!r}")
        kind, both = mode[0], "+" in mode
        if mode != "r" and not self.writable:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        file = self._call(path, self._native.open, create=kind in "wa", new=kind == "x")
        if modes.S_ISDIR(file.status().mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if kind == "w":
            file.set_len(0)
        return RawFile(file, path, mode, kind == "r" or both, kind != "r" or both, kind == "a")

    def read_bytes(self, path: Path) -> bytes:
        with self._open_raw(path, "r") as file:
            return file.readall()

    def read_text(self, path: Path, encoding: str = "utf-8", errors: str | None = None) -> str:
        return self.read_bytes(path).decode(encoding, errors or "strict")

    def write_bytes(self, path: Path, data: bytes) -> int:
        """Makes data the content of a file, which is made if there is none; returns the count of bytes."""
        with self._open_raw(path, "w") as file:
            return file.write(data)

    def write_text(
        self, path: Path, text: str, encoding: str = "utf-8", errors: str | None = None
    ) -> int:
        return self.write_bytes(path, text.encode(encoding, errors or "strict"))

    def truncate(self, path: Path, size: int) -> None:
        with self._open_raw(path, "r+") as file:
            file.truncate(size)

    def copy(self, source: Path, destination: Path) -> int:
        """Copies content and permissions; blocks are shared where the volume can."""
        return self._call(source, self._native.copy, os.fsencode(destination))

    def fsync(self, path: Path) -> None:
        """Makes a file durable, with its name."""
        with self._open_raw(path, "r") as file:
            file.sync()

    # Changes of names.

    def mkdir(self, path: Path, mode: int = 0o755) -> None:
        self._call(path, self._native.create_dir, False)
        if mode != 0o755:
            self.chmod(path, mode)

    def makedirs(self, path: Path, exist_ok: bool = False) -> None:
        if not exist_ok and self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._call(path, self._native.create_dir, True)

    def remove(self, path: Path) -> None:
        self._call(path, self._native.remove_file)

    unlink = remove

    def rmdir(self, path: Path) -> None:
        self._call(path, self._native.remove_dir, False)

    def rmtree(self, path: Path) -> None:
        """Removes a directory and all that is in it."""
        self._call(path, self._native.remove_dir, True)

    def rename(self, source: Path, destination: Path) -> None:
        """As os.rename: what has the new name is replaced."""
        self._call(source, self._native.rename, os.fsencode(destination))

    replace = rename

    def link(self, source: Path, destination: Path) -> None:
        self._call(source, self._native.hard_link, os.fsencode(destination))

    def symlink(self, target: Path, path: Path) -> None:
        self._call(target, self._native.symlink, os.fsencode(path))

    # Changes of attributes.

    def chmod(self, path: Path, mode: int, *, follow_symlinks: bool = True) -> None:
        self._call(path, self._native.change, follow=follow_symlinks, mode=modes.S_IMODE(mode))

    def chown(self, path: Path, uid: int, gid: int, *, follow_symlinks: bool = True) -> None:
        """As os.chown: -1 leaves the owner or the group as it is."""
        owner = {"uid": None if uid == -1 else uid, "gid": None if gid == -1 else gid}
        self._call(path, self._native.change, follow=follow_symlinks, **owner)

    def utime(self, path: Path, times=None, *, ns=None, follow_symlinks: bool = True) -> None:
        """As os.utime."""
        if times is not None and ns is not None:
            raise ValueError("times or ns, not both")
        if ns is None:
            now = time.time_ns()
            ns = (now, now) if times is None else [int(value * 10**9) for value in times]
        accessed, modified = ns
        values = {"accessed": accessed, "modified": modified}
        self._call(path, self._native.change, follow=follow_symlinks, **values)

    def listxattr(self, path: Path, *, follow_symlinks: bool = True) -> list[str]:
        names = self._call(path, self._native.list_xattrs, follow_symlinks)
        return sorted(os.fsdecode(name) for name in names)

    def getxattr(self, path: Path, name, *, follow_symlinks: bool = True) -> bytes:
        value = self._call(path, self._native.get_xattr, os.fsencode(name), follow_symlinks)
        if value is None:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA), path)
        return value

    def setxattr(self, path: Path, name, value: bytes, *, follow_symlinks: bool = True) -> None:
        arguments = (os.fsencode(name), bytes(value), follow_symlinks)
        self._call(path, self._native.set_xattr, *arguments)

    def removexattr(self, path: Path, name, *, follow_symlinks: bool = True) -> None:
        if not self._call(path, self._native.remove_xattr, os.fsencode(name), follow_symlinks):
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA), path)

    # The volume.

    def sync(self) -> None:
        """Makes everything durable."""
        self._call(None, self._native.sync)

    def close(self) -> None:
        """Writes everything back; the image is free for others then. Later calls fail."""
        if not self._is_closed:
            self._is_closed = True
            native, self._native = self._native, _Closed()
            native.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    @staticmethod
    def _call(path, verb, *arguments, **options):
        """Calls a verb, with the path in the error if it fails."""
        try:
            if path is None:
                return verb(*arguments, **options)
            return verb(os.fsencode(path), *arguments, **options)
        except OSError as error:
            if path is not None and error.filename is None:
                error.filename = path
            raise


class _Closed:
    """What a closed volume answers."""

    def __getattr__(self, name):
        raise ValueError("the volume is closed")
