//! The journal: record headers, and whether there is something to replay.

use crate::PatchedDevice;
use crate::input::{Input, Patches};
use crate::sample::{Content, samples};
use std::sync::Arc;
use undercroft_xfs::Volume;
use undercroft_xfs::format::LogRecordHeader;

/// Most often that opening a volume goes round the journal: each search for a record in a damaged
/// one may go round it once, and the first record, the last, and torn ones are searched for.
pub(crate) const ROUNDS: u64 = 12;

pub(crate) fn run(input: &[u8]) {
    let mut block = [0; 512];
    crate::input::overwrite(&mut block, 0, input);
    if let Some(header) = LogRecordHeader::decode(&block) {
        let mut again = [0; 512];
        header.encode(&mut again);
        assert!(header.header_blocks() > 0, "a record without a header");
        assert_eq!(LogRecordHeader::decode(&again), Some(header), "a header changes when written");
    }
    let mut input = Input(input);
    let sample = input.choose(samples());
    let is_log = |piece: &crate::Piece| piece.content == Content::Log;
    let device = Arc::new(PatchedDevice::new(sample, Patches::new(input), is_log).into_device());
    let volume = Volume::open_unreplayed(device.clone()).expect("only the journal was damaged");
    device.driver().allow(ROUNDS * sample.bytes);
    drop(volume.log_state().map_err(|error| error.to_string()));
    device.driver().allow(ROUNDS * sample.bytes);
    drop(Volume::open(device).map_err(|error| error.to_string()));
}
