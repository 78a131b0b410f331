//! Numbers as the tables print them.

use crate::measure::latency::Latency;
use crate::measure::rate::Rate;

/// Thousands with one decimal, as fio and the mailing lists print I/Os a second: `1681.1K`.
pub(crate) fn thousands(value: f64) -> String {
    format!("{:.1}K", value / 1e3)
}

/// A mean with its deviation in thousands: `1681.1K (1.6K)`.
pub(crate) fn thousands_with_deviation(mean: f64, deviation: f64) -> String {
    format!("{} ({})", thousands(mean), thousands(deviation))
}

/// A number of things: `1 thread`, `4 threads`, `1000 directories`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    let plural = thing.strip_suffix('y').map(|stem| format!("{stem}ies"));
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {}", plural.unwrap_or_else(|| format!("{thing}s"))),
    }
}

/// A share in percent with one decimal.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// I/Os a second and their deviation, for two columns.
pub(crate) fn rate_cells(rate: &Rate) -> [String; 2] {
    [thousands(rate.iops), thousands(rate.stddev)]
}

/// Mean, median and 99th percentile in microseconds, for three columns.
pub(crate) fn latency_cells(latency: &Latency) -> [String; 3] {
    [latency.mean, latency.p50, latency.p99].map(|value| format!("{value:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_in_the_sources() {
        assert_eq!(thousands_with_deviation(1_681_100.0, 1_600.0), "1681.1K (1.6K)");
        assert_eq!(percent(0.184), "18.4%");
    }

    #[test]
    fn one_thing_is_not_many() {
        assert_eq!([1, 4].map(|count| counted(count, "thread")), ["1 thread", "4 threads"]);
        assert_eq!(counted(1, "directory"), "1 directory");
        assert_eq!(counted(1000, "directory"), "1000 directories");
    }
}
