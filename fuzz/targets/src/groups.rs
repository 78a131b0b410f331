//! Headers of allocation groups: AGF, AGI, AGFL.

use crate::blocks::block;
use crate::input::Input;
use undercroft_xfs::Geometry;
use undercroft_xfs::format::{Agf, Agi, BufferKind, agfl};
use undercroft_xfs::units::AgNumber;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let kinds = [BufferKind::Agf, BufferKind::Agi, BufferKind::Agfl];
    let kind = kinds[usize::from(input.byte()) % kinds.len()];
    // The list is read with the numbers of an AGF, which is patched alike.
    let agf = (kind == BufferKind::Agfl).then(|| block(BufferKind::Agf, input));
    let fuzzed = block(kind, input);
    let (bytes, geometry) = (&fuzzed.bytes[..], &fuzzed.geometry);
    // The group is the one that the header names, if there is such a one.
    for ag in (0..geometry.ag_count).map(AgNumber) {
        match kind {
            BufferKind::Agf => free_space(bytes, geometry, ag),
            BufferKind::Agi => inodes(bytes, geometry, ag),
            _ => {
                let verdict = agfl::verify(bytes, geometry, ag).map_err(|error| error.to_string());
                let agf = agf.as_ref().map_or(bytes, |agf| &agf.bytes);
                if verdict.is_ok() && Agf::verify(agf, geometry, ag).is_ok() {
                    let agf = Agf::decode(agf, geometry);
                    let live = agfl::live(&agf, bytes, geometry).count();
                    assert!(live <= agfl::slots(geometry) as usize, "more entries than slots");
                    drop(agfl::ring(&agf, geometry).map_err(|error| error.to_string()));
                }
            }
        }
    }
}

fn free_space(bytes: &[u8], geometry: &Geometry, ag: AgNumber) {
    if Agf::verify(bytes, geometry, ag).map_err(|error| error.to_string()).is_ok() {
        let agf = Agf::decode(bytes, geometry);
        assert!(agf.longest <= agf.free_blocks, "the longest free extent is longer than all");
        drop(agfl::ring(&agf, geometry).map_err(|error| error.to_string()));
    }
}

fn inodes(bytes: &[u8], geometry: &Geometry, ag: AgNumber) {
    if Agi::verify(bytes, geometry, ag).map_err(|error| error.to_string()).is_ok() {
        let agi = Agi::decode(bytes, geometry);
        assert!(agi.free_count <= agi.count, "more free inodes than inodes");
    }
}
