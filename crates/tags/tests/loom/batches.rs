//! Batches of tags.

use loom::thread;
use undercroft_tags::TagSet;

use crate::{EVERY, Holders, model};

/// Two callers that get runs at the same time never share a tag and lose none.
#[test]
fn runs_do_not_overlap() {
    model(EVERY, || {
        let set = TagSet::builder(3).wait_queues(1).build().unwrap();
        let holders = Holders::new(3);
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let (set, holders) = (set.clone(), holders.clone());
                let mut caller = set.caller();
                thread::spawn(move || {
                    let tags = caller.try_get_batch(2);
                    for tag in tags.iter() {
                        holders.hold(tag);
                    }
                    assert!(!tags.is_empty(), "three tags are enough for one each");
                    set.put_batch(tags);
                })
            })
            .collect();
        for caller in callers {
            caller.join().unwrap();
        }
        assert_eq!(set.in_use(), 0);
    });
}
