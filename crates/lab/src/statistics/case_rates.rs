//! What files of records are compared by.

/// The rates of one case, run by run, for comparisons with another file of records.
pub(crate) struct CaseRates {
    pub(crate) case: String,
    pub(crate) of_runs: Vec<f64>,
}

impl CaseRates {
    pub(crate) fn new(case: String, of_runs: Vec<f64>) -> Self {
        Self { case, of_runs }
    }
}
