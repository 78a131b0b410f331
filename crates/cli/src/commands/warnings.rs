//! What a source was taken with all the same.

use crate::report::warning;
use undercroft_source::Warnings;

/// Prints the warnings about an archive, a description and rules; `may_refuse` where --strict refuses them.
pub(super) fn warn(warnings: &Warnings, may_refuse: bool) {
    let strict = |what: &'static str| if may_refuse { what } else { "" };
    let such = strict(" (--strict refuses such archives)");
    if warnings.no_end {
        warning(format_args!(
            "the archive has no blocks of zeros at its end; more may have followed, compare \
             it with its origin{such}"
        ));
    }
    if let Some(at) = warnings.lone_zero_block {
        warning(format_args!(
            "the archive ends with a lone block of zeros at byte {at}, as tar takes it; what \
             follows is left out{such}"
        ));
    }
    if let Some(first) = &warnings.first_foreign {
        warning(format_args!(
            "{} extended attributes in no namespace of Linux were left out, the first is {first}{}",
            warnings.foreign_attributes,
            strict(" (--strict refuses them)"),
        ));
    }
    for what in &warnings.unread {
        warning(what);
    }
    for what in warnings.description.iter().chain(&warnings.rules) {
        warning(format_args!("{what}{}", strict(" (--strict refuses that)")));
    }
}
