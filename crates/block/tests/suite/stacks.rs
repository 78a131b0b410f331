//! Stacked devices pass the checks that every device passes, with legs of every kind and behaviour.

use std::sync::Arc;

use crate::history::step;
use proptest::prelude::*;
use undercroft_block::stack::{Linear, Mirror, Overlay, StackError, Stripe};
use undercroft_block::testing::conformance::{Step, check, replay};
use undercroft_block::testing::recorder::Recorder;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{
    BlockDevice, FileDevice, FileOptions, Holder, MemoryDevice, Operation, QueueOptions, Reserved,
    SECTOR_SIZE, Sector, Window,
};

type Device = Arc<dyn BlockDevice>;

/// Makes a leg of so many sectors.
type Make = fn(u64) -> Device;

fn memory(sectors: u64) -> Device {
    Arc::new(MemoryDevice::new(sectors * SECTOR_SIZE))
}

fn file(sectors: u64) -> Device {
    let file = tempfile::tempfile().expect("a temporary file");
    let options = FileOptions {
        queue: QueueOptions { queue_bytes: 64 << 10, ..QueueOptions::default() },
        ..FileOptions::default()
    };
    let device = FileDevice::from_file(file, "scratch", &options).expect("a device");
    device.set_len(sectors * SECTOR_SIZE).expect("room for it");
    Arc::new(device)
}

/// A leg on which one in four reads fails.
fn unreadable(sectors: u64) -> Device {
    let faults = [Fault::new().on(Operation::Read).random(sectors, 4)];
    Arc::new(FaultyDevice::new(memory(sectors), faults))
}

/// A leg that fails everything after the first hundred bios.
fn dying(sectors: u64) -> Device {
    Arc::new(FaultyDevice::new(file(sectors), [Fault::new().from_nth(100)]))
}

fn linear(leg: Make, sectors: u64) -> Device {
    let first = sectors / 3;
    let legs = vec![leg(first), leg(1), leg(0), leg(sectors - first - 1)];
    Arc::new(Linear::new(legs).expect("legs"))
}

fn stripe(legs: u64, leg: Make, sectors: u64) -> Device {
    // The checks ask for whole rows of two and four legs with chunks of eight sectors.
    let legs = (0..legs).map(|number| leg(sectors / legs + number)).collect();
    Arc::new(Stripe::new(4096, legs).expect("legs"))
}

fn mirror(legs: &[Make], sectors: u64) -> Device {
    let legs = legs.iter().map(|leg| leg(sectors)).collect();
    Arc::new(Mirror::new(legs).expect("legs"))
}

fn mirrors_of_memory(sectors: u64) -> Device {
    mirror(&[memory, memory], sectors)
}

fn stripe_of_files(sectors: u64) -> Device {
    // Legs of a linear device have any length.
    match sectors % 16 {
        0 => stripe(2, file, sectors),
        _ => file(sectors),
    }
}

#[test]
fn linear_devices_conform() {
    check(&|capacity| linear(memory, capacity.0));
    check(&|capacity| linear(file, capacity.0));
}

#[test]
fn stripes_conform() {
    check(&|capacity| stripe(2, memory, capacity.0));
    check(&|capacity| stripe(4, memory, capacity.0));
    check(&|capacity| stripe(2, file, capacity.0));
}

#[test]
fn mirrors_conform() {
    check(&|capacity| mirror(&[memory], capacity.0));
    check(&|capacity| mirror(&[memory, memory], capacity.0));
    check(&|capacity| mirror(&[file, file, memory], capacity.0));
}

#[test]
fn mirrors_with_a_failing_leg_conform() {
    check(&|capacity| mirror(&[unreadable, memory], capacity.0));
    check(&|capacity| mirror(&[unreadable, file], capacity.0));
    check(&|capacity| mirror(&[file, dying], capacity.0));
    check(&|capacity| mirror(&[dying, file, unreadable], capacity.0));
}

#[test]
fn stacks_of_stacks_conform() {
    check(&|capacity| stripe(2, mirrors_of_memory, capacity.0));
    check(&|capacity| mirror(&[stripe_of_files, memory], capacity.0));
    check(&|capacity| linear(stripe_of_files, capacity.0));
    check(&|capacity| {
        let below = stripe(4, |sectors| linear(memory, sectors), capacity.0 + 32);
        Arc::new(Window::new(below, Sector(13), capacity).expect("a range inside"))
    });
}

#[test]
fn a_recorder_conforms() {
    check(&|capacity| Arc::new(Recorder::new(memory(capacity.0))));
    check(&|capacity| Arc::new(Recorder::new(stripe(2, file, capacity.0))));
}

#[test]
fn depth_has_no_end() {
    let mut device = memory(64);
    for depth in 0..3000 {
        device = match depth % 3 {
            0 => Arc::new(Window::new(Arc::clone(&device), Sector(0), Sector(64)).expect("all")),
            1 => Arc::new(Linear::new(vec![device]).expect("a leg")),
            _ => Arc::new(Mirror::new(vec![device]).expect("a leg")),
        };
    }
    let steps = [
        Step::Write { sector: 3, sectors: 4, byte: 7 },
        Step::Flush,
        Step::Read { sector: 0, sectors: 64 },
    ];
    replay(&device, &steps);
    device.drain();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_history_reads_back(steps in prop::collection::vec(step(40), 0..60)) {
        replay(&stripe(2, mirrors_of_memory, 128), &steps);
        replay(&stripe(4, file, 128), &steps);
        replay(&linear(file, 128), &steps);
        replay(&mirror(&[unreadable, file], 128), &steps);
        replay(&mirror(&[stripe_of_files, dying], 128), &steps);
    }
}

/// Two legs on one disk are one copy, or one place for two blocks.
#[test]
fn a_sector_is_in_a_stack_once() {
    let [disk, other] = [memory(64), memory(64)];
    let window = |start, length| -> Device {
        Arc::new(Window::new(Arc::clone(&disk), Sector(start), Sector(length)).expect("inside"))
    };
    let whole = || Arc::clone(&disk);
    let recorded: Device = Arc::new(Recorder::new(whole()));
    let pair: Device = Arc::new(Mirror::new(vec![Arc::clone(&other), whole()]).expect("legs"));
    let striped: Device =
        Arc::new(Stripe::new(4096, vec![Arc::clone(&other), window(0, 32)]).expect("legs"));
    let overlaid: Device = Arc::new(Overlay::new(whole()));
    let shared = [
        vec![whole(), whole()],
        vec![whole(), Arc::clone(&other), recorded],
        vec![whole(), pair],
        vec![whole(), window(8, 1)],
        vec![window(0, 32), window(31, 32)],
        vec![striped, window(24, 16)],
        vec![overlaid, whole()],
    ];
    for legs in shared {
        let names: Vec<_> = legs.iter().map(|leg| leg.name().to_owned()).collect();
        for made in [
            Linear::new(legs.clone()).err(),
            Stripe::new(4096, legs.clone()).err(),
            Mirror::new(legs).err(),
        ] {
            assert!(matches!(made, Some(StackError::Twice { .. })), "{names:?}: {made:?}");
        }
    }
    let changes = Overlay::with_changes(whole(), whole());
    assert!(matches!(changes, Err(StackError::Twice { .. })));

    // Sectors of their own.
    let halves = || vec![window(0, 32), window(32, 32)];
    Linear::new(halves()).expect("one behind the other");
    Stripe::new(4096, halves()).expect("one beside the other");
    Mirror::new(halves()).expect("a copy on one disk");
    Overlay::with_changes(window(0, 32), window(32, 32)).expect("changes behind");
    // What is only read may be the same.
    let overlays = || -> Vec<Device> {
        [whole(), whole()].map(|below| Arc::new(Overlay::new(below)) as Device).to_vec()
    };
    Linear::new(overlays()).expect("two with changes of their own");
}

/// The sectors of a range of a stack, and no others, have a holder.
#[test]
fn a_reservation_reaches_the_sectors_below() {
    let legs = [memory(64), memory(64)];
    let linear: Device = Arc::new(Linear::new(legs.to_vec()).expect("legs"));
    let stripe: Device = Arc::new(Stripe::new(4096, legs.to_vec()).expect("legs"));
    let window = |below: &Device, start, length| -> Device {
        Arc::new(Window::new(Arc::clone(below), Sector(start), Sector(length)).expect("inside"))
    };
    // At once, as each that is not free is waited for.
    let are_free = |devices: Vec<Device>| -> Vec<bool> {
        let ask = |device| std::thread::spawn(move || Reserved::new(device).map(drop).is_ok());
        let asked: Vec<_> = devices.into_iter().map(ask).collect();
        asked.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    };

    let held = Reserved::new(window(&linear, 60, 8)).expect("free");
    let clone = held.clone();
    drop(held);
    let asked = [(0, 0, 60), (0, 59, 2), (1, 0, 1), (1, 4, 60)];
    let asked = asked.map(|(leg, start, length)| window(&legs[leg], start, length));
    assert_eq!(are_free(asked.to_vec()), [true, false, false, true]);
    drop(clone);
    assert_eq!(are_free(vec![Arc::clone(&linear)]), [true]);

    // The second row: sectors 16 to 31 of the stripe are 8 to 15 of each leg.
    let held = Reserved::new(window(&stripe, 16, 12)).expect("free");
    let asked = [(0, 0, 8), (0, 15, 1), (1, 11, 1), (1, 12, 52), (0, 16, 48)];
    let asked = asked.map(|(leg, start, length)| window(&legs[leg], start, length));
    assert_eq!(are_free(asked.to_vec()), [true, false, false, true, true]);
    let error = Reserved::new(Arc::clone(&stripe)).expect_err("taken");
    assert_eq!(error.holder, Holder::Here);
    drop(held);

    // One that ends soon is waited for.
    let held = Reserved::new(Arc::clone(&stripe)).expect("free");
    let end = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(held);
    });
    assert_eq!(are_free(vec![linear]), [true]);
    end.join().expect("it does not panic");
}
