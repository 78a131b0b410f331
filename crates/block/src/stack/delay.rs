//! A device that answers later than it could: what a disk far away is like.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::StackError;
use super::bytes::{Size, size};
use super::legs::Legs;
use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::threads::timer;
use crate::units::{Limits, Sector};

/// How slow a [`Delay`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowness {
    /// Least time from the submission of a bio to its answer.
    pub latency: Duration,
    /// Bytes a second that the way to the device carries, both directions together; `None` =
    /// any number.
    pub bandwidth: Option<NonZeroU64>,
}

/// The device below, answering as one behind a network does: every bio takes at least the latency,
/// any number of them at the same time; their data goes over one way, one bio after the other.
///
/// Bios reach the device below at once, and take effect there in their order. A thread of the
/// process holds the answers back, so a submitter does not sleep. Zeroes and discards carry no
/// data.
pub struct Delay {
    legs: Legs,
    name: String,
    slowness: Slowness,
    way: Arc<Way>,
}

/// The way to the device.
#[derive(Default)]
struct Way {
    state: Mutex<WayState>,
    idle: Condvar,
}

#[derive(Default)]
struct WayState {
    /// When it is free again; `None` as long as nothing went over it.
    free: Option<Instant>,
    /// Bios submitted and not answered.
    held: usize,
}

impl Delay {
    /// `below`, as slow as `slowness` says.
    #[must_use]
    pub fn new(slowness: Slowness, below: Arc<dyn BlockDevice>) -> Self {
        let legs = Legs::new(vec![below]).expect("there is one leg");
        let name = legs.name("delay");
        Self { legs, name, slowness, way: Arc::default() }
    }

    /// Takes the way for `bytes`; returns the time of the answer.
    fn book(&self, bytes: u64) -> Instant {
        let now = Instant::now();
        let mut way = self.way.state.lock();
        way.held += 1;
        let Some(bandwidth) = self.slowness.bandwidth.filter(|_| bytes > 0) else {
            return now + self.slowness.latency;
        };
        let seconds = bytes as f64 / bandwidth.get() as f64;
        let start = way.free.map_or(now, |free| free.max(now));
        // A time that no clock reaches is as good as the largest that one does.
        let transfer = Duration::try_from_secs_f64(seconds).unwrap_or(Self::LONGEST);
        let end = start.checked_add(transfer).unwrap_or(start);
        way.free = Some(end);
        end + self.slowness.latency
    }

    /// Longest time that a description can give, and that data takes.
    pub(super) const LONGEST: Duration = Duration::from_secs(3600);
}

impl Way {
    fn answered(&self) {
        let mut state = self.state.lock();
        state.held -= 1;
        if state.held == 0 {
            self.idle.notify_all();
        }
    }
}

impl BlockDevice for Delay {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.legs.devices()[0].capacity()
    }

    fn limits(&self) -> Limits {
        self.legs.limits()
    }

    fn is_read_only(&self) -> bool {
        self.legs.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for Delay {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(mut bio) = bio.admit(self) else { return };
        let carried = match bio.operation() {
            Operation::Read | Operation::Write => bio.length(),
            Operation::Discard
            | Operation::WriteZeroes
            | Operation::CloneRange
            | Operation::Flush => 0,
        };
        let time = self.book(carried);
        let way = Arc::clone(&self.way);
        bio.intercept(move |bio, result| {
            timer::at(time, move || {
                bio.answer(result);
                way.answered();
            });
        });
        below.submit(&*self.legs.devices()[0], bio);
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        self.legs.same_parts(&sectors, visit);
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        self.legs.devices()
    }

    fn wait_answered(&self) {
        let mut state = self.way.state.lock();
        while state.held > 0 {
            self.way.idle.wait(&mut state);
        }
    }
}

/// As the options of a description.
impl fmt::Display for Slowness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.latency.as_nanos();
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)];
        let whole = |(_, unit): &(&str, u128)| nanoseconds.is_multiple_of(*unit);
        match units.into_iter().find(whole) {
            Some((name, unit)) => write!(f, "{}{name}", nanoseconds / unit)?,
            None => write!(f, "{nanoseconds}ns")?,
        }
        match self.bandwidth {
            Some(bandwidth) => write!(f, ",{}", Size(bandwidth.get())),
            None => Ok(()),
        }
    }
}

/// The latency, such as `2ms`, and, behind a comma, the bytes a second, such as `100M`.
impl std::str::FromStr for Slowness {
    type Err = StackError;

    fn from_str(text: &str) -> Result<Self, StackError> {
        let wrong = || StackError::Slowness { text: text.into() };
        let (latency, bandwidth) = match text.split_once(',') {
            Some((latency, bandwidth)) => (latency.trim(), Some(bandwidth.trim())),
            None => (text.trim(), None),
        };
        let digits = latency.find(|symbol: char| !symbol.is_ascii_digit());
        let (number, unit) = latency.split_at(digits.ok_or_else(wrong)?);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let latency = match unit {
            "ns" => Duration::from_nanos(number),
            "us" => Duration::from_micros(number),
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            _ => return Err(wrong()),
        };
        let bandwidth =
            bandwidth.map(|text| size(text).ok().and_then(NonZeroU64::new).ok_or_else(wrong));
        if latency > Delay::LONGEST {
            return Err(wrong());
        }
        Ok(Self { latency, bandwidth: bandwidth.transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::MemoryDevice;
    use crate::memory::Buffer;
    use crate::testing::{Fault, FaultyDevice};
    use crate::{Batch, Plug, read_exact_at, write_all_at};

    fn delay(text: &str, below: Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
        Arc::new(Delay::new(text.parse().unwrap(), below))
    }

    fn memory() -> Arc<dyn BlockDevice> {
        Arc::new(MemoryDevice::new(1 << 20))
    }

    /// Time that `count` reads of `bytes` at once take.
    fn reads(device: &Arc<dyn BlockDevice>, count: u64, bytes: usize) -> Duration {
        let start = Instant::now();
        let batch = Batch::new();
        let plug = Plug::new(device);
        for number in 0..count {
            let sector = Sector(number * bytes as u64 / 512);
            plug.submit(Bio::read(sector, Buffer::zeroed(bytes)).in_batch(&batch));
        }
        drop(plug);
        batch.wait().unwrap();
        start.elapsed()
    }

    #[test]
    fn bios_wait_together_and_one_after_the_other() {
        let device = delay("50ms", memory());
        let start = Instant::now();
        write_all_at(&*device, Sector(0), &[7; 512]).unwrap();
        let mut bytes = [0; 512];
        read_exact_at(&*device, Sector(0), &mut bytes).unwrap();
        assert_eq!(bytes, [7; 512]);
        assert!(start.elapsed() >= Duration::from_millis(100));
        // One after the other they would take 6.4 seconds.
        let together = reads(&device, 128, 512);
        assert!(together >= Duration::from_millis(50), "{together:?}");
        assert!(together < Duration::from_millis(3200), "{together:?}");
    }

    #[test]
    fn data_goes_over_one_way() {
        let device = delay("1ms,1M", memory());
        let time = reads(&device, 16, 16 << 10);
        assert!(time >= Duration::from_millis(251), "{time:?}");
    }

    #[test]
    fn errors_are_answers_too_and_a_drain_waits_for_all() {
        let faulty = FaultyDevice::new(memory(), [Fault::new().at(Sector(8)..Sector(9))]);
        let device = delay("30ms", Arc::new(faulty));
        let error = write_all_at(&*device, Sector(8), &[0; 512]).unwrap_err();
        assert_eq!((error.sector, error.length), (Sector(8), 512));
        let batch = Batch::new();
        let start = Instant::now();
        Plug::new(&device).submit(Bio::read(Sector(0), Buffer::zeroed(512)).in_batch(&batch));
        device.drain();
        assert!(start.elapsed() >= Duration::from_millis(30));
        batch.wait().unwrap();
    }

    #[test]
    fn texts_of_slowness() {
        for text in ["2ms", "20ms,100M", "1500us", "1s,1", "0s", "3ns"] {
            assert_eq!(text.parse::<Slowness>().unwrap().to_string(), text);
        }
        for text in ["", "2", "ms", "2m", "2ms,", "2ms,0", "2ms,1M,1M", "3601s", "2h", "-1ms"] {
            let error = text.parse::<Slowness>().unwrap_err().to_string();
            assert!(error.contains("such as 2ms or 20ms,100M"), "{error}");
        }
    }
}
