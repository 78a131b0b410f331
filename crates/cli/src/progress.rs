//! How far a long command is: a bar on a terminal, nothing elsewhere.

use crate::text;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Time between two looks of the bar.
const TICK: Duration = Duration::from_millis(200);

/// A bar that is gone when it is dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Work whose amount may become known.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Shows the bytes done, of `total` if that is known.
    pub(crate) fn show(&self, entries: u64, bytes: u64, total: Option<u64>) {
        let Self(bar) = self;
        let Some(total) = total else {
            bar.set_message(format!("{entries} entries, {}", text::bytes(bytes)));
            return;
        };
        if bar.length().is_none() {
            const BAR: &str =
                "{wide_bar} {bytes} of {total_bytes}, {msg} entries, {bytes_per_sec}, {eta} left";
            // The template is a constant; without a style the bar still works.
            if let Ok(style) = ProgressStyle::with_template(BAR) {
                bar.set_style(style);
            }
            bar.set_length(total);
        }
        bar.set_position(bytes);
        bar.set_message(entries.to_string());
    }

    /// Prints a line for people beside the bar.
    pub(crate) fn say(&self, line: &str) {
        self.0.suspend(|| eprintln!("{line}"));
    }

    /// Shows how much of the bytes there are is done.
    pub(crate) fn show_bytes(&self, done: u64, total: u64) {
        const BAR: &str = "{wide_bar} {bytes} of {total_bytes}, {eta} left";
        let Self(bar) = self;
        if bar.length().is_none()
            && let Ok(style) = ProgressStyle::with_template(BAR)
        {
            bar.set_style(style);
        }
        // A step of several has a length of its own.
        if bar.length() != Some(total) {
            bar.set_length(total);
        }
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
