//! Errors of the configuration, and tags that are put where they do not belong.

use undercroft_tags::experiments::WakePolicy;
use undercroft_tags::{Builder, ConfigError, TagSet};

#[test]
fn sets_that_cannot_be() {
    let error = |builder: Builder| builder.build().unwrap_err();
    let set = TagSet::builder;
    assert_eq!(error(set(0)), ConfigError::NoTags);
    let most = Builder::MOST_TAGS;
    assert_eq!(error(set(most + 1)), ConfigError::TooManyTags { depth: most + 1, most });
    for queues in [0, 9] {
        assert_eq!(error(set(8).wait_queues(queues)), ConfigError::WaitQueues { queues, most: 8 });
    }
    assert_eq!(error(set(8).wake_batch(0)), ConfigError::WakeBatch { batch: 0, most: 8 });
    assert_eq!(error(set(8).wake_batch(9)), ConfigError::WakeBatch { batch: 9, most: 8 });
    let cyclic = set(64).policy(WakePolicy::CyclicBatches).wake_batch(9);
    assert_eq!(error(cyclic), ConfigError::WakeBatch { batch: 9, most: 8 });
}

#[test]
fn messages_name_the_remedy() {
    for error in [
        ConfigError::NoTags,
        ConfigError::WaitQueues { queues: 9, most: 8 },
        ConfigError::WakeBatch { batch: 9, most: 8 },
    ] {
        assert!(error.to_string().len() > 30, "{error}");
    }
}

#[cfg(debug_assertions)]
mod caught {
    use super::TagSet;

    #[test]
    #[should_panic(expected = "tag 0 is put but nobody holds it")]
    fn a_double_put() {
        let set = TagSet::new(4).unwrap();
        let tag = set.caller().try_get().unwrap();
        set.put(tag);
        set.put(tag);
    }

    #[test]
    #[should_panic(expected = "tag 0 is put but nobody holds it")]
    fn a_double_put_through_the_caller() {
        let set = TagSet::new(4).unwrap();
        let mut caller = set.caller();
        let tag = caller.try_get().unwrap();
        caller.put(tag);
        caller.put(tag);
    }

    #[test]
    #[should_panic(expected = "tag 3 is put but nobody holds it")]
    fn a_tag_that_was_not_got() {
        let set = TagSet::new(4).unwrap();
        set.put(set.tag(3).unwrap());
    }

    #[test]
    #[should_panic(expected = "put it where it was got")]
    fn a_put_to_another_set() {
        let (one, other) = (TagSet::new(4).unwrap(), TagSet::new(4).unwrap());
        let tag = one.caller().try_get().unwrap();
        let _same_number = other.caller().try_get().unwrap();
        other.put(tag);
    }

    #[test]
    #[should_panic(expected = "put it where it was got")]
    fn a_batch_to_another_set() {
        let (one, other) = (TagSet::new(64).unwrap(), TagSet::new(64).unwrap());
        other.put_batch(one.caller().try_get_batch(4));
    }
}

/// What the documentation of `TagSet::put` says of release builds.
#[cfg(not(debug_assertions))]
mod defined {
    use super::TagSet;

    #[test]
    fn a_double_put_frees_the_tag_of_the_next_holder() {
        let set = TagSet::new(1).unwrap();
        let mut caller = set.caller();
        let tag = caller.try_get().unwrap();
        set.put(tag);
        set.put(tag);
        assert_eq!(set.in_use(), 0);
        assert_eq!(caller.try_get(), Some(tag));
        set.put(tag);
        assert_eq!(caller.try_get(), Some(tag));
    }

    #[test]
    fn a_tag_out_of_range_is_ignored() {
        let (large, small) = (TagSet::new(1024).unwrap(), TagSet::new(4).unwrap());
        let mut caller = small.caller();
        while caller.try_get().is_some() {}
        small.put(large.tag(1000).unwrap());
        caller.put(large.tag(1000).unwrap());
        assert_eq!((small.in_use(), caller.try_get()), (4, None));
    }

    #[test]
    fn a_tag_of_another_set_counts_by_its_number() {
        let (one, other) = (TagSet::new(4).unwrap(), TagSet::new(4).unwrap());
        let tag = one.caller().try_get().unwrap();
        assert_eq!(other.caller().try_get().unwrap().number(), tag.number());
        other.put(tag);
        assert_eq!((one.in_use(), other.in_use()), (1, 0));
    }
}
