//! Swap space: the header in its first page, as `mkswap` of util-linux writes it.

use uuid::Uuid;

/// Bytes of a page. Kernels with larger pages do not take the space.
const PAGE: u64 = 4096;

/// Least bytes of a swap space that `mkswap` makes: ten pages.
pub(super) const LEAST: u64 = 10 * PAGE;

const VERSION_AT: usize = 1024;
const LAST_PAGE_AT: usize = 1028;
const ID_AT: usize = 1036;
const MAGIC: &[u8] = b"SWAPSPACE2";

/// The first page of a swap space of `bytes` bytes. What is longer than can be counted stays
/// unused.
pub(super) fn header(bytes: u64, id: Uuid) -> Vec<u8> {
    let mut page = vec![0; PAGE as usize];
    let last = u32::try_from(bytes / PAGE - 1).unwrap_or(u32::MAX);
    page[VERSION_AT..VERSION_AT + 4].copy_from_slice(&1_u32.to_le_bytes());
    page[LAST_PAGE_AT..LAST_PAGE_AT + 4].copy_from_slice(&last.to_le_bytes());
    page[ID_AT..ID_AT + 16].copy_from_slice(id.as_bytes());
    let magic_at = page.len() - MAGIC.len();
    page[magic_at..].copy_from_slice(MAGIC);
    page
}
