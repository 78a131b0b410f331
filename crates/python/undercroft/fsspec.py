"""XFS volumes for fsspec: xfs://path::s3://bucket/disk.img, or fsspec.filesystem("xfs", fo="disk.img")."""

import os
import stat as modes

import fsspec
from fsspec import AbstractFileSystem
from fsspec.utils import stringify_path

import undercroft

_KINDS = {modes.S_IFDIR: "directory", modes.S_IFREG: "file", modes.S_IFLNK: "link"}


class XfsFileSystem(AbstractFileSystem):
    """The volume in an image, which is a file of this machine or of any other file system of fsspec.

    fo               path of the image, or an open file
    mode             "r" to read, "w" to change it
    target_protocol  where the image is; without it, a file or device of this machine
    target_options   options of that place
    **options        options of undercroft.open
    """

    root_marker = ""
    protocol = "xfs"
    cachable = False

    def __init__(
        self,
        fo="",
        mode="r",
        target_protocol=None,
        target_options=None,
        partition=None,
        lv=None,
        offset=None,
        keys=(),
        **kwargs,
    ):
        super().__init__(**kwargs)
        if mode not in ("r", "w"):
            raise ValueError(f"mode is {mode!r}, not 'r' or 'w'")
        self._target = None
        if isinstance(fo, (str, os.PathLike)) and target_protocol not in (None, "file", "local"):
            how = "rb" if mode == "r" else "r+b"
            self._target = fsspec.open(
                stringify_path(fo), mode=how, protocol=target_protocol, **(target_options or {})
            )
            fo = self._target.open()
        options = {"partition": partition, "lv": lv, "offset": offset, "keys": keys}
        self.volume = undercroft.open(fo, writable=mode == "w", **options)

    def close(self):
        """Writes everything back."""
        self.volume.close()
        if self._target is not None:
            self._target.close()

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path).strip("/")

    @staticmethod
    def _inside(path):
        return "/" + path

    def _make_parents(self, path):
        """Makes the directories above a path, as stores have them without being asked."""
        if "/" in path:
            self.makedirs(path.rsplit("/", 1)[0], exist_ok=True)

    def _info(self, path, status):
        kind = _KINDS.get(modes.S_IFMT(status.st_mode), "other")
        info = {
            "name": path,
            "size": status.st_size if kind == "file" else 0,
            "type": kind,
            "mode": status.st_mode,
            "uid": status.st_uid,
            "gid": status.st_gid,
            "ino": status.st_ino,
            "nlink": status.st_nlink,
            "mtime": status.st_mtime,
            "created": self.volume.birthtime_ns(self._inside(path)) / 10**9,
        }
        if kind == "link":
            info["destination"] = self.volume.readlink(self._inside(path))
            try:
                target = self.volume.stat(self._inside(path))
            except OSError:
                return info
            info["size"] = target.st_size
            info["type"] = _KINDS.get(modes.S_IFMT(target.st_mode), "other")
            info["islink"] = True
        return info

    def info(self, path, **kwargs):
        path = self._strip_protocol(path)
        return self._info(path, self.volume.lstat(self._inside(path)))

    def ls(self, path, detail=True, **kwargs):
        path = self._strip_protocol(path)
        try:
            entries = self.volume.scandir(self._inside(path))
            found = [
                self._info(f"{path}/{entry.name}".lstrip("/"), entry.stat(follow_symlinks=False))
                for entry in entries
            ]
        except NotADirectoryError:
            found = [self.info(path)]
        return found if detail else [info["name"] for info in found]

    def _open(self, path, mode="rb", block_size=None, **kwargs):
        path = self._strip_protocol(path)
        if "r" not in mode:
            self._make_parents(path)
        return self.volume.open(self._inside(path), mode.replace("t", ""))

    def cat_file(self, path, start=None, end=None, **kwargs):
        if start is not None or end is not None:
            return super().cat_file(path, start, end, **kwargs)
        return self.volume.read_bytes(self._inside(self._strip_protocol(path)))

    def mkdir(self, path, create_parents=True, **kwargs):
        path = self._inside(self._strip_protocol(path))
        if self.volume.exists(path):
            raise FileExistsError(path)
        if create_parents:
            self.volume.makedirs(path)
        else:
            self.volume.mkdir(path)

    def makedirs(self, path, exist_ok=False):
        self.volume.makedirs(self._inside(self._strip_protocol(path)), exist_ok=exist_ok)

    def rmdir(self, path):
        self.volume.rmdir(self._inside(self._strip_protocol(path)))

    def rm_file(self, path):
        self.volume.remove(self._inside(self._strip_protocol(path)))

    _rm = rm_file

    def rm(self, path, recursive=False, maxdepth=None):
        for one in [path] if isinstance(path, (str, os.PathLike)) else path:
            inside = self._inside(self._strip_protocol(one))
            if self.volume.isdir(inside) and not self.volume.islink(inside):
                if not recursive:
                    raise IsADirectoryError(one)
                self.volume.rmtree(inside)
            else:
                self.volume.remove(inside)

    def cp_file(self, path1, path2, **kwargs):
        source, destination = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.volume.isdir(self._inside(source)):
            self.makedirs(destination, exist_ok=True)
            return
        self._make_parents(destination)
        self.volume.copy(self._inside(source), self._inside(destination))

    def mv_file(self, path1, path2, **kwargs):
        source, destination = self._strip_protocol(path1), self._strip_protocol(path2)
        self.volume.rename(self._inside(source), self._inside(destination))

    def touch(self, path, truncate=True, **kwargs):
        path = self._strip_protocol(path)
        self._make_parents(path)
        inside = self._inside(path)
        if truncate or not self.volume.exists(inside):
            self.volume.write_bytes(inside, b"")
        else:
            self.volume.utime(inside)

    def created(self, path):
        import datetime

        return datetime.datetime.fromtimestamp(self.info(path)["created"], datetime.timezone.utc)

    def modified(self, path):
        import datetime

        return datetime.datetime.fromtimestamp(self.info(path)["mtime"], datetime.timezone.utc)
