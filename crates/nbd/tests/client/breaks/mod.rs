//! Random breaks under writes and flushes: killed servers, cut connections, a slow wire. Many more
//! of them: `cargo xtask soak nbd`.

use undercroft_testkit::nbd::stand::Stand;

/// Breaks of each stand.
const BREAKS: u64 = 12;

#[test]
fn nothing_is_lost_when_a_server_with_a_cache_of_its_own_is_killed() {
    Stand::CachedFile.run(1, BREAKS);
}

#[test]
fn nothing_is_lost_when_qemu_with_qcow2_is_killed() {
    Stand::Qcow2.run(2, BREAKS);
}

#[test]
fn nothing_is_lost_when_connections_are_cut() {
    Stand::Cut { connections: 1 }.run(3, BREAKS);
}

#[test]
fn nothing_is_lost_when_one_of_several_connections_is_cut() {
    Stand::Cut { connections: 4 }.run(4, BREAKS);
}

#[test]
fn nothing_is_lost_when_connections_to_our_own_server_are_cut() {
    Stand::Own { connections: 1 }.run(5, BREAKS);
    Stand::Own { connections: 4 }.run(6, BREAKS);
}
