//! Numbers as the tables print them.

/// Thousands with one decimal, as fio and the mailing lists print I/Os a second: `1681.1K`.
pub(super) fn thousands(value: f64) -> String {
    format!("{:.1}K", value / 1e3)
}

/// A mean with its deviation in thousands: `1681.1K (1.6K)`.
pub(super) fn thousands_with_deviation(mean: f64, deviation: f64) -> String {
    format!("{} ({})", thousands(mean), thousands(deviation))
}

/// A share in percent with one decimal.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_in_the_sources() {
        assert_eq!(thousands_with_deviation(1_681_100.0, 1_600.0), "1681.1K (1.6K)");
        assert_eq!(percent(0.184), "18.4%");
    }
}
