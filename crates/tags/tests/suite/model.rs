//! One thread against a plain model of the set: tags handed out are free and within limits, and a
//! get fails only when nothing within reach is free.

use std::collections::BTreeSet;

use proptest::prelude::*;
use undercroft_tags::experiments::WakePolicy;
use undercroft_tags::{Caller, Tag, TagBatch, TagSet, User};

#[derive(Debug, Clone)]
enum Step {
    Get {
        caller: usize,
    },
    GetBatch {
        caller: usize,
        count: u32,
    },
    /// Through a caller, or through the set.
    Put {
        which: usize,
        caller: Option<usize>,
    },
    PutBatch {
        which: usize,
    },
    Idle {
        user: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6_usize).prop_map(|caller| Step::Get { caller }),
        3 => (0..6_usize, 0..80_u32).prop_map(|(caller, count)| Step::GetBatch { caller, count }),
        5 => (any::<usize>(), prop::option::of(0..6_usize))
            .prop_map(|(which, caller)| Step::Put { which, caller }),
        2 => any::<usize>().prop_map(|which| Step::PutBatch { which }),
        1 => (0..2_usize).prop_map(|user| Step::Idle { user }),
    ]
}

#[derive(Debug, Clone)]
struct Shape {
    depth: u32,
    fair_sharing: bool,
    policy: WakePolicy,
}

fn shape() -> impl Strategy<Value = Shape> {
    let policy = prop_oneof![
        Just(WakePolicy::Counters),
        Just(WakePolicy::CyclicBatches),
        Just(WakePolicy::WakeOne),
        Just(WakePolicy::WakeAll),
    ];
    (1..260_u32, any::<bool>(), policy).prop_map(|(depth, fair_sharing, policy)| Shape {
        depth,
        fair_sharing,
        policy,
    })
}

/// The tags that a caller may take.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Any,
    User(usize),
}

/// The set, its callers, and the tags that they must hold.
struct Run {
    set: TagSet,
    callers: Vec<(Caller, Kind)>,
    users: Vec<User>,
    held: Vec<(Tag, Kind)>,
    batches: Vec<(TagBatch, Kind)>,
    active: [bool; 2],
    shape: Shape,
}

impl Run {
    fn new(shape: &Shape) -> Self {
        let builder =
            TagSet::builder(shape.depth).fair_sharing(shape.fair_sharing).policy(shape.policy);
        let set = builder.build().unwrap();
        let users = vec![set.user(), set.user()];
        let mut callers = vec![(set.caller(), Kind::Any), (set.caller(), Kind::Any)];
        callers.extend((0..2).map(|user| (users[user].caller(), Kind::User(user))));
        let shape = shape.clone();
        let (held, batches, active) = (Vec::new(), Vec::new(), [false; 2]);
        Self { set, callers, users, held, batches, active, shape }
    }

    fn busy(&self) -> BTreeSet<u32> {
        let batches = self.batches.iter().flat_map(|(batch, _)| batch.iter());
        self.held.iter().map(|(tag, _)| *tag).chain(batches).map(Tag::number).collect()
    }

    fn holds(&self, user: usize) -> u32 {
        let of = Kind::User(user);
        let single = self.held.iter().filter(|(_, kind)| *kind == of).count() as u32;
        let batches = self.batches.iter().filter(|(_, kind)| *kind == of);
        single + batches.map(|(batch, _)| batch.len()).sum::<u32>()
    }

    /// How many more the kind of caller must be able to get, one after the other.
    fn left(&mut self, kind: Kind) -> u32 {
        let busy = self.busy();
        let depth = self.shape.depth;
        let free = (0..depth).filter(|tag| !busy.contains(tag)).count() as u32;
        match kind {
            Kind::Any => free,
            Kind::User(user) if self.shape.fair_sharing => {
                self.active[user] = true;
                let users = self.active.iter().filter(|active| **active).count() as u32;
                assert_eq!(users.max(1), users);
                let share = if depth == 1 { 1 } else { depth.div_ceil(users).max(4) };
                free.min(share.saturating_sub(self.holds(user)))
            }
            Kind::User(_) => free,
        }
    }

    fn check_new(&self, tag: Tag) {
        assert!(!self.busy().contains(&tag.number()), "{tag:?} has two holders");
        assert!(tag.number() < self.shape.depth);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Get { caller } => {
                let caller = caller % self.callers.len();
                let kind = self.callers[caller].1;
                let left = self.left(kind);
                match self.callers[caller].0.try_get() {
                    Some(tag) => {
                        assert!(left > 0);
                        self.check_new(tag);
                        self.held.push((tag, kind));
                    }
                    None => assert!(left == 0),
                }
            }
            Step::GetBatch { caller, count } => {
                let caller = caller % self.callers.len();
                let kind = self.callers[caller].1;
                let left = self.left(kind);
                let batch = self.callers[caller].0.try_get_batch(count);
                assert!(batch.len() <= count.min(left));
                assert!(!batch.is_empty() || count == 0 || left == 0);
                for tag in batch.iter() {
                    self.check_new(tag);
                }
                self.batches.push((batch, kind));
            }
            Step::Put { which, caller } => {
                if self.held.is_empty() {
                    return;
                }
                let (tag, _) = self.held.swap_remove(which % self.held.len());
                match caller {
                    Some(caller) => {
                        let caller = caller % self.callers.len();
                        self.callers[caller].0.put(tag);
                    }
                    None => self.set.put(tag),
                }
            }
            Step::PutBatch { which } => {
                if !self.batches.is_empty() {
                    let (batch, _) = self.batches.swap_remove(which % self.batches.len());
                    self.set.put_batch(batch);
                }
            }
            Step::Idle { user } => {
                self.users[user].idle();
                self.active[user] = false;
            }
        }
    }

    fn check(&self) {
        let busy: Vec<u32> = self.set.iter_busy().map(Tag::number).collect();
        assert_eq!(busy, self.busy().into_iter().collect::<Vec<_>>());
        assert_eq!(self.set.in_use() as usize, busy.len());
        let statistics = self.set.statistics();
        assert_eq!(statistics.gets - statistics.puts, busy.len() as u64);
        if self.shape.fair_sharing {
            for user in 0..2 {
                assert_eq!(self.users[user].in_flight(), self.holds(user));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_set_is_a_set(shape in shape(), steps in prop::collection::vec(step(), 1..200)) {
        let mut run = Run::new(&shape);
        for step in &steps {
            run.step(step);
            run.check();
        }
        while let Some((tag, _)) = run.held.pop() {
            run.set.put(tag);
        }
        while let Some((batch, _)) = run.batches.pop() {
            run.set.put_batch(batch);
        }
        run.check();
        // Everything that was put can be got again.
        let mut all = run.set.caller();
        let got = std::iter::from_fn(|| all.try_get()).count() as u32;
        assert_eq!(got, shape.depth);
    }
}
