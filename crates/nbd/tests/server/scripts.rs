//! Each request by libnbd's shell (nbdsh): flags, contents, errors, the order of many in flight, and
//! the options before them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use undercroft_block::MemoryDevice;
use undercroft_nbd::server::{Export, Settings};

use crate::served::{Served, device, runs, sample};

/// Runs `script` connected to `uri` as `h`; its assertions decide.
fn connected(uri: &str, script: &str) {
    nbdsh(&["--uri", uri, "--command", script]);
}

/// Runs `script` with `URI` set, and a handle `h` that is not connected.
pub(crate) fn unconnected(uri: &str, script: &str) {
    nbdsh(&["--command", &format!("URI = {uri:?}\n{script}")]);
}

/// nbdsh with the Python that its package is for: another one may come first in the path.
fn nbdsh(arguments: &[&str]) {
    runs("env", &[&["PATH=/usr/bin:/bin", "nbdsh"], arguments].concat());
}

/// What a script does to have an error of the server, not of libnbd.
const CAREFREE: &str = "
h.set_strict_mode(0)
def refused(call, wanted):
    try:
        call()
    except nbd.Error as error:
        assert error.errno == wanted, (error.errno, wanted)
    else:
        assert False, 'was not refused: ' + wanted
";

#[test]
fn requests_with_their_flags_do_what_they_say() {
    let served = Served::file(8 << 20);
    connected(
        &served.uri("disk"),
        "
assert h.get_structured_replies_negotiated()
assert h.get_size() == 8 << 20
a, b = b'a' * 65536, b'b' * 4096
h.pwrite(a, 0)
h.pwrite(b, 4096, nbd.CMD_FLAG_FUA)
assert h.pread(65536, 0) == a[:4096] + b + a[8192:]
assert h.pread_structured(4096, 4096, lambda *a: 0, nbd.CMD_FLAG_DF) == b
h.zero(4096, 8192)
h.zero(4096, 12288, nbd.CMD_FLAG_NO_HOLE)
h.zero(4096, 16384, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
assert h.pread(65536, 0) == a[:4096] + b + bytes(12288) + a[20480:]
h.trim(32768, 32768)
h.cache(65536, 0)
h.flush()
assert h.pread(20480, 0) == a[:4096] + b + bytes(12288)
# As long as a request may be, and the last bytes.
big = bytes(range(256)) * 16384
h.pwrite(big, 4 << 20)
assert h.pread(4 << 20, 4 << 20) == big
assert h.pread(512, (8 << 20) - 512) == big[-512:]
",
    );
}

/// Two clients write beside each other in the same blocks, and find every byte.
#[test]
fn requests_need_not_be_whole_blocks() {
    let served = Served::file(1 << 20);
    unconnected(
        &served.uri("disk"),
        &format!(
            "{CAREFREE}
import random, threading
size, part, checked = 1 << 20, 700, []
model = bytearray(size)
def work(number):
    mine = nbd.NBD()
    mine.set_strict_mode(0)
    mine.connect_uri(URI)
    chance = random.Random(number)
    for step in range(400):
        # Parts of its own, which end anywhere in a block.
        begin = (chance.randrange(size // part // 2 - 4) * 2 + number) * part + chance.randrange(part)
        length = chance.randrange(1, part - begin % part + 1)
        kind = chance.randrange(5)
        if kind < 2:
            data = chance.randbytes(length)
            mine.pwrite(data, begin, nbd.CMD_FLAG_FUA if kind else 0)
            model[begin:begin + length] = data
        elif kind == 2:
            mine.zero(length, begin, nbd.CMD_FLAG_NO_HOLE if step % 2 else 0)
            model[begin:begin + length] = bytes(length)
        else:
            checked.append(mine.pread(length, begin) == model[begin:begin + length])
threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(checked) > 200 and all(checked), checked
h.set_strict_mode(0)
h.connect_uri(URI)
assert h.pread(size, 0) == model
h.zero(300000, 100)
model[100:300100] = bytes(300000)
h.trim(100, 400000)
h.cache(3, 5)
assert h.pread(size - 7, 7) == model[7:]
refused(lambda: h.pwrite(b'x', size), 'ENOSPC')
refused(lambda: h.pread(2, size - 1), 'EINVAL')
"
        ),
    );
}

#[test]
fn clients_without_chunks_get_simple_answers() {
    let served = Served::file(1 << 20);
    unconnected(
        &served.uri("disk"),
        &format!(
            "{CAREFREE}
h.set_request_structured_replies(False)
h.connect_uri(URI)
assert not h.get_structured_replies_negotiated()
h.pwrite(b'x' * 8192, 512)
assert h.pread(8192, 512) == b'x' * 8192
refused(lambda: h.pread(512, 1 << 20), 'EINVAL')
refused(lambda: h.pread(512, 0, nbd.CMD_FLAG_DF), 'EINVAL')
assert h.pread(512, 512) == b'x' * 512
"
        ),
    );
}

#[test]
fn wrong_requests_are_refused_and_the_connection_goes_on() {
    let served = Served::file(1 << 20);
    connected(
        &served.uri("disk"),
        &format!(
            "{CAREFREE}
end = 1 << 20
refused(lambda: h.pread(1024, end - 512), 'EINVAL')
refused(lambda: h.pwrite(bytes(1024), end - 512), 'ENOSPC')
refused(lambda: h.pwrite(bytes(512), end), 'ENOSPC')
refused(lambda: h.pwrite(bytes(512), (1 << 64) - 512), 'ENOSPC')
refused(lambda: h.zero(1024, end - 512), 'ENOSPC')
refused(lambda: h.trim(1024, end - 512), 'EINVAL')
refused(lambda: h.pread(512, 0, nbd.CMD_FLAG_NO_HOLE), 'EINVAL')
refused(lambda: h.zero(512, 0, nbd.CMD_FLAG_FAST_ZERO), 'ENOTSUP')
refused(lambda: h.block_status(512, 0, lambda *a: 0), 'EINVAL')
h.pwrite(b'y' * 512, end - 512)
assert h.pread(512, end - 512) == b'y' * 512
"
        ),
    );
}

#[test]
fn read_only_exports_refuse_all_that_modifies() {
    let exports = |directory: &Path| {
        let path = directory.join("disk.img");
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        vec![Export::new("disk", device(&path)).read_only()]
    };
    let served = Served::new(exports, Settings::default());
    connected(
        &served.uri("disk"),
        &format!(
            "{CAREFREE}
assert h.is_read_only()
refused(lambda: h.pwrite(bytes(512), 0), 'EPERM')
refused(lambda: h.zero(512, 0), 'EPERM')
refused(lambda: h.trim(512, 0), 'EPERM')
h.flush()
assert h.pread(512, 0) == bytes(512)
"
        ),
    );
}

#[test]
fn many_requests_in_flight_have_their_own_answers() {
    let served = Served::file(16 << 20);
    connected(
        &served.uri("disk"),
        "
import random
random.seed(3)
block, blocks = 16384, 1024
want = [bytes([n & 255, n >> 8]) * (block // 2) for n in range(blocks)]
order = list(range(blocks))
random.shuffle(order)
cookies = []
def finish():
    while h.aio_in_flight() > 0:
        h.poll(-1)
    assert all(h.aio_command_completed(cookie) for cookie in cookies)
    cookies.clear()
for n in order:
    cookies.append(h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(want[n])), n * block))
    if len(cookies) > 200:
        finish()
finish()
h.flush()
# Of all sizes, long and short ones in turn.
reads = []
for n in order:
    count = random.choice([1, 1, 1, 4, 64])
    first = min(n, blocks - count)
    buffer = nbd.Buffer(count * block)
    cookies.append(h.aio_pread(buffer, first * block))
    reads.append((first, count, buffer))
    if len(cookies) > 100:
        finish()
finish()
for first, count, buffer in reads:
    assert buffer.to_bytearray() == b''.join(want[first:first + count]), first
",
    );
}

#[test]
fn overlapping_writes_of_one_connection_end_as_they_were_sent() {
    let served = Served::file(1 << 20);
    connected(
        &served.uri("disk"),
        "
for round in range(200):
    cookies = []
    for byte in range(16):
        data = nbd.Buffer.from_bytearray(bytearray([byte + 1] * 8192))
        cookies.append(h.aio_pwrite(data, 512 * (byte % 3)))
    read = nbd.Buffer(8192)
    cookies.append(h.aio_pread(read, 1024))
    while h.aio_in_flight() > 0:
        h.poll(-1)
    assert all(h.aio_command_completed(cookie) for cookie in cookies)
    found = h.pread(8192, 0)
    assert found[:512] == bytes([16]) * 512 and found == bytes([16]) * 8192, round
",
    );
}

#[test]
fn long_zeroes_are_told_as_holes_and_not_sent() {
    let served = Served::file(1 << 20);
    connected(
        &served.uri("disk"),
        "
def chunks(offset, length, flags=0):
    found = []
    told = lambda data, at, status, error: found.append((at, len(data), status)) or 0
    bytes = h.pread_structured(length, offset, told, flags)
    return bytes, sorted(found)
H, D = nbd.READ_HOLE, nbd.READ_DATA
h.pwrite(b'z' * 4096, 131072)
want = bytes(131072) + b'z' * 4096 + bytes(126976)
assert chunks(0, 262144) == (want, [(0, 131072, H), (131072, 4096, D), (135168, 126976, H)])
assert chunks(0, 262144, nbd.CMD_FLAG_DF) == (want, [(0, 262144, D)])
assert chunks(0, 65536, nbd.CMD_FLAG_DF) == (bytes(65536), [(0, 65536, H)])
assert chunks(0, 4096) == (bytes(4096), [(0, 4096, D)])
",
    );
}

#[test]
fn long_reads_come_in_chunks_or_in_one() {
    let served = Served::new(
        |directory: &Path| {
            let path = directory.join("disk.img");
            sample(&path, 8);
            vec![Export::new("disk", device(&path))]
        },
        Settings::default(),
    );
    let script = format!(
        "
h.set_strict_mode(0)
want = open({:?}, 'rb').read()
def chunks(offset, length, flags=0):
    found = []
    told = lambda data, at, status, error: found.append((at, len(data), status)) or 0
    bytes = h.pread_structured(length, offset, told, flags)
    assert bytes == want[offset:offset + length], (offset, length, flags)
    return sorted(found)
H, D = nbd.READ_HOLE, nbd.READ_DATA
K = 1024
for length in [512 * K, 640 * K, 2048 * K, 6144 * K]:
    for offset in [0, 512 * K, 1000 * K, 1024 * K + 512, 77]:
        for flags in [0, nbd.CMD_FLAG_DF]:
            found = chunks(offset, length, flags)
            at = offset
            for start, count, _ in found:
                assert start == at, found
                at += count
            assert at == offset + length, found
            if flags: assert len(found) == 1, found
assert chunks(1024 * K, 1024 * K) == [(at * 256 * K, 256 * K, H) for at in range(4, 8)]
",
        served.path("disk.img")
    );
    connected(&served.uri("disk"), &script);
}

#[test]
fn what_one_connection_flushed_another_reads() {
    let served = Served::file(1 << 20);
    unconnected(
        &served.uri("disk"),
        "
others = [nbd.NBD() for _ in range(4)]
for other in others:
    other.connect_uri(URI)
assert all(other.can_multi_conn() for other in others)
for n, other in enumerate(others):
    other.pwrite(bytes([n + 1]) * 4096, n * 4096)
others[0].flush()
for other in others:
    assert other.pread(16384, 0) == b''.join(bytes([n + 1]) * 4096 for n in range(4))
    other.shutdown()
",
    );
}

#[test]
fn options_list_and_describe_exports_before_one_is_chosen() {
    let exports = |_: &Path| {
        let memory = |mebibytes: u64| Arc::new(MemoryDevice::new(mebibytes << 20));
        vec![
            Export::new("one", memory(1)).description("the first"),
            Export::new("two", memory(2)).read_only(),
        ]
    };
    let served = Served::new(exports, Settings::default());
    unconnected(
        &served.uri("one"),
        &format!(
            "{CAREFREE}
h.set_opt_mode(True)
h.add_meta_context('base:allocation')
h.connect_uri(URI)
names = []
assert h.opt_list(lambda name, words: names.append((name, words)) or 0) == 2
assert names == [('one', 'the first'), ('two', '')], names
h.set_export_name('none')
refused(h.opt_info, 'ENOENT')
refused(h.opt_go, 'ENOENT')
h.set_export_name('two')
h.opt_info()
assert h.get_size() == 2 << 20 and h.is_read_only()
contexts = []
h.opt_list_meta_context(lambda name: contexts.append(name) or 0)
assert contexts == ['base:allocation'], contexts
h.set_export_name('one')
h.opt_go()
assert h.get_size() == 1 << 20 and not h.is_read_only()
assert h.get_block_size(nbd.SIZE_MINIMUM) == 1
extents = []
h.block_status(1 << 20, 0, lambda name, at, found, error: extents.extend(found) or 0)
assert extents == [1 << 20, 0], extents
"
        ),
    );
}
