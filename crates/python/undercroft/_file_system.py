"""A volume with the verbs of the modules os and shutil."""

import errno
import io
import os
import stat as modes
import posixpath

from ._raw_file import RawFile


def _stat_result(status):
    times = {"atime": status.accessed, "mtime": status.modified, "ctime": status.changed}
    values = (status.mode, status.number, 0, status.links, status.uid, status.gid, status.size)
    values += tuple(time // 10**9 for time in times.values())
    more = {f"st_{name}": time / 10**9 for name, time in times.items()}
    more.update({f"st_{name}_ns": time for name, time in times.items()})
    more.update(
        st_blksize=status.block_size,
        st_blocks=status.blocks,
        st_rdev=os.makedev(status.major, status.minor),
    )
    return os.stat_result(values, more)


class DirEntry:
    """A name in a directory with the status of its file, as os.scandir gives them."""

    __slots__ = ("name", "path", "_status", "_fs")

    def __init__(self, fs, name, path, status):
        self._fs, self.name, self.path, self._status = fs, name, path, status

    def _mode(self, follow):
        if follow and self.is_symlink():
            try:
                return self.stat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                return 0
        return self._status.mode

    def inode(self):
        return self._status.number

    def is_symlink(self):
        return modes.S_ISLNK(self._status.mode)

    def is_dir(self, *, follow_symlinks=True):
        return modes.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks=True):
        return modes.S_ISREG(self._mode(follow_symlinks))

    def stat(self, *, follow_symlinks=True):
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
    def writable(self):
        """Whether it was opened for changes."""
        return self._native.writable

    # Names.

    def listdir(self, path="/"):
        """The names in a directory, sorted; bytes if the path is bytes."""
        return [entry.name for entry in self.scandir(path)]

    def scandir(self, path="/"):
        """The entries of a directory, sorted by name, with the status of each."""
        path = os.fspath(path)
        decode = (lambda name: name) if isinstance(path, bytes) else os.fsdecode
        entries = self._call(path, self._native.entries)
        entries.sort(key=lambda entry: entry[0])
        names = ((decode(name), status) for name, status in entries)
        return [DirEntry(self, name, posixpath.join(path, name), status) for name, status in names]

    def walk(self, top="/", topdown=True, onerror=None, followlinks=False):
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

    def find(self, path="/"):
        """All paths below a directory with their os.stat_result, in one call: fast for large trees."""
        path = os.fspath(path)
        decode = (lambda name: name) if isinstance(path, bytes) else os.fsdecode
        found = self._call(path, self._native.below)
        return [(decode(name), _stat_result(status)) for name, status in found]

    # Status.

    def stat(self, path, *, follow_symlinks=True):
        """As os.stat."""
        return _stat_result(self._call(path, self._native.status, follow=follow_symlinks))

    def birthtime_ns(self, path):
        """When a file was made, in nanoseconds since 1970."""
        return self._call(path, self._native.status).created

    def lstat(self, path):
        return self.stat(path, follow_symlinks=False)

    def _has_mode(self, path, is_kind, follow=True):
        try:
            return is_kind(self.stat(path, follow_symlinks=follow).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def exists(self, path):
        return self._has_mode(path, lambda mode: True)

    def isfile(self, path):
        return self._has_mode(path, modes.S_ISREG)

    def isdir(self, path):
        return self._has_mode(path, modes.S_ISDIR)

    def islink(self, path):
        return self._has_mode(path, modes.S_ISLNK, follow=False)

    def getsize(self, path):
        return self.stat(path).st_size

    def readlink(self, path):
        target = self._call(path, self._native.read_link)
        return target if isinstance(os.fspath(path), bytes) else os.fsdecode(target)

    def statvfs(self):
        """Space and inodes, with the names of os.statvfs that a volume has."""
        block_size, blocks, free, inodes, free_inodes = self._call(None, self._native.usage)
        values = (block_size, block_size, blocks, free, free)
        values += (inodes + free_inodes, free_inodes, free_inodes, 0, 255)
        return os.statvfs_result(values)

    # Content.

    def open(self, path, mode="r", buffering=-1, encoding=None, errors=None, newline=None):
        """As the open of Python. Without a buffer (buffering=0) reads and writes go to the volume at once."""
        text, plain = "b" not in mode, mode.replace("b", "").replace("t", "")
        if plain not in ("r", "r+", "w", "w+", "a", "a+", "x", "x+") or ("b" in mode and "t" in mode):
            raise ValueError(f"invalid mode: {mode!r}")
        if not text and (encoding or errors or newline):
            raise ValueError("binary mode takes no encoding, errors or newline")
        kind, both = plain[0], "+" in plain
        if kind != "r" and not self.writable:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        file = self._call(path, self._native.open, create=kind in "wa", new=kind == "x")
        if modes.S_ISDIR(file.status().mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if kind == "w":
            file.set_len(0)
        raw = RawFile(file, path, mode, kind == "r" or both, kind != "r" or both, kind == "a")
        if buffering == 0:
            if text:
                raise ValueError("text needs a buffer")
            return raw
        size = 128 << 10 if buffering in (-1, 1) else buffering
        if both:
            buffered = io.BufferedRandom(raw, size)
        else:
            buffered = (io.BufferedReader if kind == "r" else io.BufferedWriter)(raw, size)
        if not text:
            return buffered
        return io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)

    def read_bytes(self, path):
        with self.open(path, "rb", 0) as file:
            return file.readall()

    def read_text(self, path, encoding="utf-8", errors=None):
        return self.read_bytes(path).decode(encoding, errors or "strict")

    def write_bytes(self, path, data):
        """Makes data the content of a file, which is made if there is none; returns the count of bytes."""
        with self.open(path, "wb", 0) as file:
            return file.write(data)

    def write_text(self, path, text, encoding="utf-8", errors=None):
        return self.write_bytes(path, text.encode(encoding, errors or "strict"))

    def truncate(self, path, size):
        with self.open(path, "r+b", 0) as file:
            file.truncate(size)

    def copy(self, source, destination):
        """Copies content and permissions; blocks are shared where the volume can."""
        return self._call(source, self._native.copy, os.fsencode(destination))

    def fsync(self, path):
        """Makes a file durable, with its name."""
        with self.open(path, "rb", 0) as file:
            file.sync()

    # Changes of names.

    def mkdir(self, path, mode=0o755):
        self._call(path, self._native.create_dir, False)
        if mode != 0o755:
            self.chmod(path, mode)

    def makedirs(self, path, exist_ok=False):
        if not exist_ok and self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._call(path, self._native.create_dir, True)

    def remove(self, path):
        self._call(path, self._native.remove_file)

    unlink = remove

    def rmdir(self, path):
        self._call(path, self._native.remove_dir, False)

    def rmtree(self, path):
        """Removes a directory and all that is in it."""
        self._call(path, self._native.remove_dir, True)

    def rename(self, source, destination):
        """As os.rename: what has the new name is replaced."""
        self._call(source, self._native.rename, os.fsencode(destination))

    replace = rename

    def link(self, source, destination):
        self._call(source, self._native.hard_link, os.fsencode(destination))

    def symlink(self, target, path):
        self._call(target, self._native.symlink, os.fsencode(path))

    # Changes of attributes.

    def chmod(self, path, mode, *, follow_symlinks=True):
        self._call(path, self._native.change, follow=follow_symlinks, mode=modes.S_IMODE(mode))

    def chown(self, path, uid, gid, *, follow_symlinks=True):
        """As os.chown: -1 leaves the owner or the group as it is."""
        owner = {"uid": None if uid == -1 else uid, "gid": None if gid == -1 else gid}
        self._call(path, self._native.change, follow=follow_symlinks, **owner)

    def utime(self, path, times=None, *, ns=None, follow_symlinks=True):
        """As os.utime."""
        if times is not None and ns is not None:
            raise ValueError("times or ns, not both")
        if ns is None:
            import time

            now = time.time_ns()
            ns = (now, now) if times is None else [int(value * 10**9) for value in times]
        accessed, modified = ns
        values = {"accessed": accessed, "modified": modified}
        self._call(path, self._native.change, follow=follow_symlinks, **values)

    def listxattr(self, path, *, follow_symlinks=True):
        names = self._call(path, self._native.list_xattrs, follow_symlinks)
        return sorted(os.fsdecode(name) for name in names)

    def getxattr(self, path, name, *, follow_symlinks=True):
        value = self._call(path, self._native.get_xattr, os.fsencode(name), follow_symlinks)
        if value is None:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA), path)
        return value

    def setxattr(self, path, name, value, *, follow_symlinks=True):
        arguments = (os.fsencode(name), bytes(value), follow_symlinks)
        self._call(path, self._native.set_xattr, *arguments)

    def removexattr(self, path, name, *, follow_symlinks=True):
        if not self._call(path, self._native.remove_xattr, os.fsencode(name), follow_symlinks):
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA), path)

    # The volume.

    def sync(self):
        """Makes everything durable."""
        self._call(None, self._native.sync)

    def close(self):
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
