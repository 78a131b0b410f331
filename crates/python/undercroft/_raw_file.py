"""An open file as the io module knows them."""

import errno
import io
import os
import threading


class RawFile(io.RawIOBase):
    """Bytes of a file of a volume, with a position."""

    def __init__(self, file, name, mode, readable, writable, appending):
        super().__init__()
        self._file = file
        self._lock = threading.Lock()
        self._position = file.size() if appending else 0
        self._readable, self._writable, self._appending = readable, writable, appending
        self.name, self.mode = name, mode

    def _check(self, may, what):
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if not may:
            raise io.UnsupportedOperation(what)

    def readable(self):
        return self._readable

    def writable(self):
        return self._writable

    def seekable(self):
        return True

    def readinto(self, buffer):
        self._check(self._readable, "not readable")
        view = memoryview(buffer).cast("B")
        with self._lock:
            data = self._file.read_at(self._position, len(view))
            self._position += len(data)
        view[: len(data)] = data
        return len(data)

    def readall(self):
        self._check(self._readable, "not readable")
        with self._lock:
            data = self._file.read_at(self._position, max(0, self._file.size() - self._position))
            self._position += len(data)
        return data

    def write(self, data):
        self._check(self._writable, "not writable")
        data = bytes(data)
        with self._lock:
            if self._appending:
                self._position = self._file.append(data)
            else:
                self._file.write_at(self._position, data)
                self._position += len(data)
        return len(data)

    def seek(self, offset, whence=os.SEEK_SET):
        self._check(True, "")
        with self._lock:
            if whence in (getattr(os, "SEEK_DATA", 3), getattr(os, "SEEK_HOLE", 4)):
                is_hole = whence == getattr(os, "SEEK_HOLE", 4)
                place = self._file.seek(offset, is_hole)
                if place is None:
                    raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), self.name)
            else:
                starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size()}
                if whence not in starts:
                    raise ValueError(f"invalid whence: {whence}")
                place = starts[whence] + offset
                if place < 0:
                    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.name)
            self._position = place
            return place

    def tell(self):
        self._check(True, "")
        return self._position

    def truncate(self, size=None):
        self._check(self._writable, "not writable")
        size = self._position if size is None else size
        self._file.set_len(size)
        return size

    def sync(self):
        """Makes all of the file durable. What a buffer in front of it holds has to be flushed before."""
        self._check(True, "")
        self._file.sync()
