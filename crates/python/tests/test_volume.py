"""Programs as people write them, against the module."""

import errno
import hashlib
import io
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

import undercroft
from undercroft import undercroft_native

SIZE = 320 << 20


class Volume(unittest.TestCase):
    """Tests with a new volume each."""

    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)
        self.image = os.path.join(self.home, "disk.img")
        self.fs = undercroft.format(self.image, SIZE)
        self.addCleanup(self.fs.close)

    def again(self, **options):
        """Closes the volume and opens it again."""
        self.fs.close()
        self.fs = undercroft.open(self.image, **options)
        self.addCleanup(self.fs.close)
        return self.fs


class Names(Volume):
    def test_what_was_written_is_there_when_opened_again(self):
        self.fs.makedirs("/etc/app")
        self.fs.write_text("/etc/app/name", "grün\n")
        self.fs.symlink("app/name", "/etc/link")
        fs = self.again()
        self.assertEqual(fs.listdir("/etc"), ["app", "link"])
        self.assertEqual(fs.read_text("/etc/link"), "grün\n")
        self.assertEqual(fs.readlink("/etc/link"), "app/name")
        self.assertEqual(fs.listdir(b"/etc/app"), [b"name"])
        self.assertFalse(fs.writable)

    def test_names_of_any_bytes_go_both_ways(self):
        name = b"/\xff\xfe odd"
        self.fs.write_bytes(name, b"1")
        [text] = self.fs.listdir("/")
        self.assertEqual(os.fsencode("/" + text), name)
        self.assertEqual(self.fs.read_bytes("/" + text), b"1")

    def test_a_walk_and_a_find_agree(self):
        for path in ("/a/b/c", "/a/d", "/e"):
            self.fs.makedirs(path)
            self.fs.write_bytes(path + "/file", path.encode())
        self.fs.symlink("/a", "/e/loop")
        walked = {os.path.join(top, name) for top, _, files in self.fs.walk() for name in files}
        walked |= {os.path.join(top, name) for top, names, _ in self.fs.walk() for name in names}
        self.assertEqual(walked, {path for path, _ in self.fs.find("/") if path != "/"})
        self.assertIn("/e/loop", walked)
        bottom_up = [top for top, _, _ in self.fs.walk("/a", topdown=False)]
        self.assertEqual(bottom_up, ["/a/b/c", "/a/b", "/a/d", "/a"])

    def test_names_move_and_go(self):
        self.fs.write_bytes("/one", b"1")
        self.fs.link("/one", "/two")
        self.assertEqual(self.fs.stat("/two").st_nlink, 2)
        self.fs.write_bytes("/three", b"3")
        self.fs.rename("/one", "/three")
        self.assertEqual(self.fs.read_bytes("/three"), b"1")
        self.fs.remove("/two")
        self.fs.mkdir("/full")
        self.fs.write_bytes("/full/x", b"")
        with self.assertRaises(OSError) as caught:
            self.fs.rmdir("/full")
        self.assertEqual(caught.exception.errno, errno.ENOTEMPTY)
        self.fs.rmtree("/full")
        self.assertEqual(self.fs.listdir(), ["three"])

    def test_errors_are_those_of_python(self):
        self.fs.mkdir("/d")
        self.fs.write_bytes("/f", b"x")
        cases = [
            (FileNotFoundError, lambda: self.fs.read_bytes("/none"), "/none"),
            (FileNotFoundError, lambda: self.fs.stat("/none/x"), "/none/x"),
            (IsADirectoryError, lambda: self.fs.open("/d"), "/d"),
            (IsADirectoryError, lambda: self.fs.remove("/d"), "/d"),
            (NotADirectoryError, lambda: self.fs.listdir("/f"), "/f"),
            (FileExistsError, lambda: self.fs.mkdir("/d"), "/d"),
            (FileExistsError, lambda: self.fs.open("/f", "x"), "/f"),
        ]
        for kind, call, path in cases:
            with self.assertRaises(kind) as caught:
                call()
            self.assertEqual(caught.exception.filename, path)
        with self.assertRaises(OSError) as caught:
            self.again().write_bytes("/f", b"y")
        self.assertEqual(caught.exception.errno, errno.EROFS)


class Content(Volume):
    def test_files_are_those_of_the_io_module(self):
        with self.fs.open("/lines", "w") as file:
            file.write("one\ntwo\n")
            self.assertIsInstance(file, io.TextIOWrapper)
        with self.fs.open("/lines", "a") as file:
            print("three", file=file)
        with self.fs.open("/lines") as file:
            self.assertEqual(list(file), ["one\n", "two\n", "three\n"])
        with self.fs.open("/lines", "r+b") as file:
            file.seek(4)
            file.write(b"TWO")
            file.seek(-6, os.SEEK_END)
            self.assertEqual(file.read(), b"three\n")
            file.truncate(8)
        self.assertEqual(self.fs.read_bytes("/lines"), b"one\nTWO\n")
        with self.assertRaises(ValueError):
            file.read()
        with self.fs.open("/lines", "rb", 0) as raw, self.assertRaises(io.UnsupportedOperation):
            raw.write(b"")

    def test_holes_are_seen(self):
        with self.fs.open("/sparse", "wb", 0) as file:
            file.seek(1 << 30)
            file.write(b"end")
            self.assertEqual(file.seek(0, os.SEEK_DATA), 1 << 30)
            with self.assertRaises(OSError) as caught:
                file.seek(2 << 30, os.SEEK_DATA)
            self.assertEqual(caught.exception.errno, errno.ENXIO)
        known = self.fs.stat("/sparse")
        self.assertEqual(known.st_size, (1 << 30) + 3)
        self.assertLess(known.st_blocks, 1 << 10)

    def test_status_and_attributes_are_kept(self):
        self.fs.write_bytes("/f", b"12345")
        self.fs.chown("/f", 1000, -1)
        self.fs.chmod("/f", 0o4750)
        # A read sets the time of access.
        self.fs.copy("/f", "/copy")
        self.fs.utime("/f", ns=(1_000_000_001, -5))
        self.fs.setxattr("/f", "user.colour", b"green\0")
        known = self.again().stat("/f")
        self.assertEqual(stat.filemode(known.st_mode), "-rwsr-x---")
        self.assertEqual((known.st_uid, known.st_gid, known.st_size), (1000, 0, 5))
        self.assertEqual((known.st_atime_ns, known.st_mtime_ns), (1_000_000_001, -5))
        self.assertEqual(self.fs.listxattr("/f"), ["user.colour"])
        self.assertEqual(self.fs.getxattr("/f", "user.colour"), b"green\0")
        with self.assertRaises(OSError) as caught:
            self.fs.getxattr("/f", "user.none")
        self.assertEqual(caught.exception.errno, errno.ENODATA)
        self.assertEqual(self.fs.read_bytes("/copy"), b"12345")
        self.assertGreater(self.fs.statvfs().f_bavail, 0)

    def test_eight_threads_at_once(self):
        def work(number, failures):
            try:
                directory = f"/thread-{number}"
                self.fs.mkdir(directory)
                for turn in range(40):
                    data = bytes([number]) * (turn * 997)
                    self.fs.write_bytes(f"{directory}/{turn}", data)
                    if turn % 10 == 0:
                        self.fs.fsync(f"{directory}/{turn}")
                    if self.fs.read_bytes(f"{directory}/{turn}") != data:
                        failures.append((number, turn))
            except Exception as error:
                failures.append(error)

        failures = []
        threads = [threading.Thread(target=work, args=(n, failures)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        fs = self.again()
        self.assertEqual(len(fs.find("/")), 1 + 8 * 41)


class Opening(Volume):
    def test_a_volume_is_open_for_change_once(self):
        with self.assertRaises(OSError) as caught:
            undercroft.open(self.image, writable=True)
        self.assertIn("disk.img", str(caught.exception))

    def test_a_closed_volume_says_so(self):
        self.fs.close()
        self.fs.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            self.fs.listdir()

    def test_what_is_no_volume_is_refused(self):
        self.fs.close()
        path = os.path.join(self.home, "text")
        with open(path, "wb") as file:
            file.write(b"no volume" * 1000)
        with self.assertRaises(OSError):
            undercroft.open(path)
        with open(path, "rb") as file, self.assertRaises(OSError):
            undercroft.open(file)
        with self.assertRaises(FileNotFoundError):
            undercroft.open(os.path.join(self.home, "none"))
        with self.assertRaises(ValueError):
            undercroft.open(self.image, offset=7)

    def test_a_file_of_python_is_a_disk(self):
        self.fs.write_bytes("/f", os.urandom(3_000_000))
        content = self.fs.read_bytes("/f")
        self.fs.close()
        with open(self.image, "r+b", 0) as file:
            with undercroft.open(file, writable=True) as fs:
                self.assertEqual(fs.read_bytes("/f"), content)
                fs.write_bytes("/g", content[::-1])
                fs.sync()
        with undercroft.open(self.image) as fs:
            self.assertEqual(fs.read_bytes("/g"), content[::-1])

    def test_a_file_of_python_that_lies_is_an_error(self):
        self.fs.write_bytes("/f", b"x" * 100_000)
        self.fs.close()

        class Liar:
            def __init__(self, file, how):
                self.file, self.how, self.is_honest = file, how, True

            def seek(self, *arguments):
                return self.file.seek(*arguments)

            def read(self, count):
                if self.is_honest:
                    return self.file.read(count)
                return self.how(self.file, count)

        def raises(file, count):
            raise RuntimeError("the network is gone")

        ways = [
            (lambda file, count: b"", "gave 0 bytes"),
            (lambda file, count: file.read(count) + b"more", "bytes"),
            (lambda file, count: "text", "str"),
            (raises, "network is gone"),
        ]
        for how, words in ways:
            with open(self.image, "rb") as file:
                liar = Liar(file, how)
                fs = undercroft.open(liar)
                liar.is_honest = False
                with self.assertRaisesRegex(OSError, words):
                    fs.read_bytes("/f")
                fs.close()

    def test_no_panic_crosses_the_border(self):
        with self.assertRaisesRegex(BaseException, "asked for"):
            undercroft_native.panic()
        self.fs.write_bytes("/after", b"1")

    def test_damage_is_an_error(self):
        self.fs.write_bytes("/f", b"x" * 100_000)
        self.fs.close()
        with open(self.image, "r+b") as file:
            file.seek(0)
            file.write(bytes(512))
        with self.assertRaises(OSError):
            undercroft.open(self.image)


class Lost(Volume):
    def test_removed_files_are_found_and_read(self):
        content = os.urandom(3_000_000)
        self.fs.makedirs("/home/ann")
        self.fs.write_bytes("/home/ann/photo.jpg", content)
        self.fs.write_bytes("/kept", b"x")
        self.fs.sync()
        self.again(writable=True).remove("/home/ann/photo.jpg")
        self.fs.close()
        [found] = [file for file in undercroft.deleted(self.image) if file.size]
        self.assertEqual((found.path, found.state, found.size), ("/home/ann/photo.jpg", "whole", 3_000_000))
        self.assertEqual(found.read(), content)
        with found.open() as file:
            file.seek(-10, os.SEEK_END)
            self.assertEqual(file.read(), content[-10:])
            for place in (0, 1, 4095, 4097, 1 << 20, 2_999_990):
                file.seek(place)
                self.assertEqual(file.read(5_000), content[place : place + 5_000])
        self.assertEqual(stat.filemode(found.mode), "-rw-r--r--")
        self.assertGreater(found.removed_ns, found.mtime_ns)

    def test_a_check_names_damage(self):
        self.fs.write_bytes("/f", b"x")
        self.fs.close()
        self.assertEqual(undercroft.check(self.image), [])
        with open(self.image, "r+b") as file:
            file.seek(512 + 56)
            file.write(b"\xff")
        findings = undercroft.check(self.image)
        self.assertTrue(any(finding.is_error for finding in findings))
        self.assertIn("allocation group 0", findings[0].text)


class Kernel(Volume):
    """What another program made, and what it says of ours."""

    def test_the_volume_is_sound_for_others(self):
        for number in range(200):
            self.fs.makedirs(f"/d{number % 7}", exist_ok=True)
            self.fs.write_bytes(f"/d{number % 7}/{number}", os.urandom(number * 331))
        for number in range(0, 200, 3):
            self.fs.remove(f"/d{number % 7}/{number}")
        digests = {
            path: hashlib.sha256(self.fs.read_bytes(path)).hexdigest()
            for path, status in self.fs.find("/")
            if stat.S_ISREG(status.st_mode)
        }
        self.fs.close()
        repair = os.environ["UNDERCROFT_XFS_REPAIR"]
        done = subprocess.run([repair, "-n", self.image], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        point = os.path.join(self.home, "mount")
        os.mkdir(point)
        subprocess.run(["mount", "-o", "loop,ro", self.image, point], check=True)
        try:
            for path, digest in digests.items():
                with open(point + path, "rb") as file:
                    self.assertEqual(hashlib.sha256(file.read()).hexdigest(), digest, path)
        finally:
            subprocess.run(["umount", point], check=True)


if __name__ == "__main__":
    sys.exit(unittest.main())
