//! A server goes on when the thread of one connection panics.

use std::path::Path;
use std::sync::Arc;

use undercroft_block::MemoryDevice;
use undercroft_nbd::protocol::{BASE_ALLOCATION, StatusExtent};
use undercroft_nbd::server::{Export, Extents, Settings};

use crate::scripts::unconnected;
use crate::served::Served;

const SIZE: u64 = 1 << 20;

/// Cannot tell what is in the second half.
struct Defect;

impl Extents for Defect {
    fn name(&self) -> &str {
        BASE_ALLOCATION
    }

    fn at(&self, offset: u64, end: u64) -> StatusExtent {
        assert!(end <= SIZE / 2, "the defect of this test");
        StatusExtent { length: end - offset, flags: 0 }
    }
}

#[test]
fn a_defect_ends_the_connection_of_who_found_it() {
    let exports = |_: &Path| {
        let device = Arc::new(MemoryDevice::new(SIZE));
        vec![Export::new("disk", device).context(Arc::new(Defect))]
    };
    let mut served = Served::new(exports, Settings::default());
    unconnected(
        &served.uri("disk"),
        "
other = nbd.NBD()
other.connect_uri(URI)
other.pwrite(b'a' * 4096, 0)
h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
h.connect_uri(URI)
h.block_status(4096, 0, lambda *a: 0)
try:
    h.block_status(4096, 1 << 19, lambda *a: 0)
except nbd.Error:
    pass
else:
    assert False, 'the defect was not found'
assert other.pread(4096, 0) == b'a' * 4096
third = nbd.NBD()
third.connect_uri(URI)
third.pwrite(b'b' * 4096, 0)
assert other.pread(4096, 0) == b'b' * 4096
",
    );
    // It waits for all connections that are counted.
    served.stop();
}
