//! Bios one at a time, past any plug: for metadata and small reads, whose submitter waits.

use super::screen::{for_each_fitting, screen};
use crate::bio::{Bio, BlockError};
use crate::device::{BlockDevice, route};
use crate::memory::Buffer;
use crate::request::{Request, RequestList};
use crate::threads::{own_queues, plugged};
use crate::units::Sector;

/// Submits one bio without staging it.
pub(crate) fn submit_directly(device: &dyn BlockDevice, bio: Bio) {
    if let Some(bio) = screen(bio, device) {
        route(device, bio, |queue, bio| {
            for_each_fitting(bio, &queue.limits(), |bio| {
                queue.submit(&mut RequestList::of(Request::new(bio)));
            });
        });
    }
}

/// Submits one bio, past any plug but after what the plugs of this thread hold, and waits.
fn submit_and_wait(device: &dyn BlockDevice, bio: Bio) -> Result<Buffer, BlockError> {
    plugged::send();
    let (bio, waiter) = bio.immediate().waited();
    own_queues::defer(|| submit_directly(device, bio));
    waiter.wait().into_buffer()
}

/// Reads `length` bytes (whole sectors) from `sector` on, without a copy.
///
/// # Errors
/// As the device answered.
pub fn read_buffer(
    device: &dyn BlockDevice,
    sector: Sector,
    length: usize,
) -> Result<Buffer, BlockError> {
    read_into(device, sector, Buffer::zeroed(length))
}

/// Fills `buffer` (whole sectors) from `sector` on and gives it back: memory that is used again.
///
/// # Errors
/// As the device answered; the buffer is gone.
pub fn read_into(
    device: &dyn BlockDevice,
    sector: Sector,
    buffer: Buffer,
) -> Result<Buffer, BlockError> {
    submit_and_wait(device, Bio::read(sector, buffer))
}

/// Fills `bytes` (whole sectors) from `sector` on. For metadata and small reads: it copies, since
/// memory in flight is owned by its bio. On an error the contents of `bytes` are unspecified.
///
/// # Errors
/// As the device answered.
pub fn read_exact_at(
    device: &dyn BlockDevice,
    sector: Sector,
    bytes: &mut [u8],
) -> Result<(), BlockError> {
    bytes.copy_from_slice(&read_buffer(device, sector, bytes.len())?);
    Ok(())
}

/// Writes a copy of `bytes` (whole sectors) to `sector` on. Not durable before a [`flush`].
///
/// # Errors
/// As the device answered.
pub fn write_all_at(
    device: &dyn BlockDevice,
    sector: Sector,
    bytes: &[u8],
) -> Result<(), BlockError> {
    submit_and_wait(device, Bio::write(sector, Buffer::copy_of(bytes))).map(drop)
}

/// Makes `bytes` bytes (whole sectors) from `sector` on read as zeroes.
///
/// # Errors
/// As the device answered.
pub fn write_zeroes_at(
    device: &dyn BlockDevice,
    sector: Sector,
    bytes: u64,
) -> Result<(), BlockError> {
    if bytes == 0 {
        return Ok(());
    }
    submit_and_wait(device, Bio::write_zeroes(sector, bytes)).map(drop)
}

/// Makes everything submitted before durable.
///
/// # Errors
/// As the device answered; afterwards nothing is known about the durability of earlier writes.
pub fn flush(device: &dyn BlockDevice) -> Result<(), BlockError> {
    submit_and_wait(device, Bio::flush()).map(drop)
}
