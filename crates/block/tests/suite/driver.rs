//! The example of a driver keeps the contract of drivers.

#[path = "../../examples/driver.rs"]
mod example;

#[test]
fn the_example_reads_writes_hits_its_time_limit_and_ends() {
    example::main().expect("it works");
}
