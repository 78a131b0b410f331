"""The file system of fsspec, with images of this machine and in other file systems."""

import os

import fsspec
import pytest

import undercroft
from undercroft.fsspec import XfsFileSystem

try:
    from fsspec.tests import abstract
except ImportError:
    # Older than the abstract suites.
    abstract = None

SIZE = 320 << 20


@pytest.fixture(autouse=True)
def registered():
    fsspec.register_implementation("xfs", XfsFileSystem, clobber=True)


@pytest.fixture
def image(tmp_path):
    path = str(tmp_path / "disk.img")
    with undercroft.format(path, SIZE) as fs:
        fs.makedirs("/etc/app")
        fs.write_text("/etc/app/name", "first\n")
        fs.write_bytes("/blob", bytes(range(256)) * 4096)
        fs.symlink("etc/app", "/link")
    return path


def test_files_are_listed_and_read(image):
    fs = fsspec.filesystem("xfs", fo=image)
    assert fs.ls("/", detail=False) == ["blob", "etc", "link"]
    assert fs.ls("etc/app/name", detail=False) == ["etc/app/name"]
    assert fs.find("") == ["blob", "etc/app/name"] or "etc/app/name" in fs.find("")
    assert fs.info("blob")["size"] == 1 << 20 and fs.isfile("blob")
    assert fs.isdir("etc") and fs.isdir("link") and not fs.exists("none")
    assert fs.glob("etc/*/na*") == ["etc/app/name"]
    assert fs.cat_file("blob", 255, 258) == b"\xff\x00\x01"
    assert fs.cat("etc/app/name") == b"first\n"
    with pytest.raises(FileNotFoundError):
        fs.open("none")
    fs.close()


def test_files_are_changed(image, tmp_path):
    fs = fsspec.filesystem("xfs", fo=image, mode="w")
    with fs.open("new/below/file", "wb") as file:
        file.write(b"1" * 300_000)
    with fs.open("new/below/file", "ab") as file:
        file.write(b"2")
    fs.copy("new", "copy", recursive=True)
    fs.mv("blob", "moved")
    fs.rm("etc", recursive=True)
    fs.touch("empty")
    fs.get("copy", str(tmp_path / "out"), recursive=True)
    assert (tmp_path / "out/below/file").read_bytes() == b"1" * 300_000 + b"2"
    fs.put(str(tmp_path / "out"), "back", recursive=True)
    fs.close()
    with undercroft.open(image) as volume:
        assert volume.listdir() == ["back", "copy", "empty", "link", "moved", "new"]
        assert volume.getsize("/back/below/file") == 300_001


def test_an_image_may_be_anywhere(image):
    memory = fsspec.filesystem("memory")
    memory.put_file(image, "/images/disk.img")
    with fsspec.open("xfs://etc/app/name::memory://images/disk.img", "rt") as file:
        assert file.read() == "first\n"
    fs, path = fsspec.core.url_to_fs("xfs://link/name::memory://images/disk.img")
    assert fs.cat(path) == b"first\n"
    fs.close()
    memory.rm("/images", recursive=True)


if abstract is not None:

    class Fixtures(abstract.AbstractFixtures):
        @pytest.fixture
        def fs(self, tmp_path):
            path = str(tmp_path / "abstract.img")
            undercroft.format(path, SIZE).close()
            fs = fsspec.filesystem("xfs", fo=path, mode="w")
            yield fs
            fs.close()

        @pytest.fixture
        def fs_path(self):
            return "top"

        @pytest.fixture
        def fs_join(self):
            return lambda *parts: "/".join(parts)

        @pytest.fixture
        def local_path(self, tmp_path):
            path = tmp_path / "local"
            os.mkdir(path)
            return str(path)

    class TestCopy(abstract.AbstractCopyTests, Fixtures):
        pass

    class TestGet(abstract.AbstractGetTests, Fixtures):
        pass

    class TestPut(abstract.AbstractPutTests, Fixtures):
        pass

    # Newer releases have more of them.
    if hasattr(abstract, "AbstractPipeTests"):

        class TestPipe(abstract.AbstractPipeTests, Fixtures):
            pass

    if hasattr(abstract, "AbstractOpenTests"):

        class TestOpen(abstract.AbstractOpenTests, Fixtures):
            pass
