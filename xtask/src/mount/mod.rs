//! `cargo xtask soak mount` and `mount-kill`: suites of others on a mount of ours.
