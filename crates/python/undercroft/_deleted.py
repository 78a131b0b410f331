"""Removed files."""

import io
import os


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
        return io.BufferedReader(_Raw(self))

    def __repr__(self):
        return f"<undercroft.DeletedFile {self.path!r} {self.state} {self.size}>"


class _Raw(io.RawIOBase):
    def __init__(self, file):
        super().__init__()
        self._file, self._position = file, 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=os.SEEK_SET):
        place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size}[whence]
        if place < 0:
            raise ValueError(f"negative seek position {place}")
        self._position = place
        return place

    def readinto(self, buffer):
        view = memoryview(buffer).cast("B")
        data = self._file._found.read(self._file._index, self._position, len(view))
        view[: len(data)] = data
        self._position += len(data)
        return len(data)
