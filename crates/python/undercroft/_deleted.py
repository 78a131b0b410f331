"""Removed files."""

import io

from ._raw_file import RawFile

# Bytes that are read at a time: what is read of the disk at once.
PIECE = 1 << 20


class DeletedFile:
    """A file that was removed: what it was, and what of it is left.

    path        its first path; one that begins with "?/" has no way up to the root; None if it has none
    paths       all of them
    state       "whole", "shared", "likely", "unsized", "partly" or "lost"
    size        bytes
    removed_ns  when it was removed, in nanoseconds since 1970; None if nothing says so
    mtime_ns    last change of its content
    uid, gid    whose it was
    mode        as st_mode; None if nothing says so
    inode       its number, and
    generation  which of the files that had it
    """

    def __init__(self, found, index, about):
        self._found, self._index = found, index
        self.paths, self.state, self.size = about.paths, about.state, about.size
        self.removed_ns, self.mtime_ns = about.removed, about.modified
        self.uid, self.gid, self.mode = about.uid, about.gid, about.mode
        self.inode, self.generation = about.number, about.generation

    @property
    def path(self):
        return self.paths[0] if self.paths else None

    def read(self):
        """All of its bytes; what is lost is zeroes."""
        return self._found.read(self._index, 0, self.size)

    def open(self):
        """Its bytes as a file."""
        content = _Content(self._found, self._index, self.size)
        return io.BufferedReader(RawFile(content, self.path, "rb", True, False, False), PIECE)

    def __repr__(self):
        return f"<undercroft.DeletedFile {self.path!r} {self.state} {self.size}>"


class _Content:
    """The bytes of a removed file by their place, as RawFile reads them."""

    def __init__(self, found, index, size):
        self._found, self._index, self._size = found, index, size

    def size(self):
        return self._size

    def read_at(self, offset, count):
        return self._found.read(self._index, offset, count)

    def seek(self, offset, hole):
        raise io.UnsupportedOperation("the holes of a removed file are not known")
