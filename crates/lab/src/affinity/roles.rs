//! Which CPU has which role.

use super::outcome::{Cpus, Placement, Role};

impl Cpus {
    /// The roles of device `device`; `cpus` is not empty. Interrupts go round the CPUs, device by
    /// device.
    ///
    /// An X is another CPU than that of the interrupts, and than those of the other roles as far as
    /// there are so many CPUs. With two, an X of queueing or completion beside an application on X
    /// is the application's CPU: the rows differ in name only then, and the counters follow the
    /// CPUs, not the names. With one CPU all roles are on it.
    #[must_use]
    pub fn of_device(cpus: &[u32], placement: Placement, device: usize) -> Self {
        let interrupt = cpus[device % cpus.len()];
        let Placement::Pinned { application, queue, completion } = placement else {
            return Self { interrupt, application: None, queue: None, completion: None };
        };
        let start = device % cpus.len();
        // The first CPU behind the interrupt's that is in none of the lists, the least important
        // taken being given up first.
        let another = |taken: &[u32]| {
            let behind = || cpus[start..].iter().chain(&cpus[..start]).copied().skip(1);
            (1..=taken.len())
                .rev()
                .find_map(|count| behind().find(|cpu| !taken[..count].contains(cpu)))
                .unwrap_or(interrupt)
        };
        let resolve = |role, application: u32, taken: &[u32]| match role {
            Role::I => interrupt,
            Role::A => application,
            Role::X => another(taken),
        };
        let application = resolve(application, interrupt, &[interrupt]);
        let queue = resolve(queue, application, &[interrupt, application]);
        let completion = resolve(completion, application, &[interrupt, application, queue]);
        Self {
            interrupt,
            application: Some(application),
            queue: Some(queue),
            completion: Some(completion),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(cpus: &[u32], names: &str, device: usize) -> [u32; 4] {
        let role = |letter| match letter {
            'A' => Role::A,
            'I' => Role::I,
            _ => Role::X,
        };
        let letters: Vec<Role> = names.chars().map(role).collect();
        let placement = Placement::Pinned {
            application: letters[0],
            queue: letters[1],
            completion: letters[2],
        };
        let of = Cpus::of_device(cpus, placement, device);
        let known = |cpu: Option<u32>| cpu.unwrap();
        [of.interrupt, known(of.application), known(of.queue), known(of.completion)]
    }

    #[test]
    fn with_four_cpus_every_x_is_a_cpu_of_its_own() {
        assert_eq!(roles(&[0, 1, 2, 3], "XXX", 0), [0, 1, 2, 3]);
        assert_eq!(roles(&[0, 1, 2, 3], "XXX", 3), [3, 0, 1, 2]);
        assert_eq!(roles(&[0, 1, 2, 3], "IXX", 0), [0, 0, 1, 2]);
        assert_eq!(roles(&[4, 5, 6, 7], "XAI", 1), [5, 6, 6, 5]);
    }

    #[test]
    fn with_two_cpus_an_x_is_never_the_interrupts() {
        assert_eq!(roles(&[0, 1], "XXX", 0), [0, 1, 1, 1]);
        assert_eq!(roles(&[0, 1], "IXA", 0), [0, 0, 1, 0]);
        assert_eq!(roles(&[0, 1], "IAX", 1), [1, 1, 1, 0]);
        assert_eq!(roles(&[0], "XXX", 5), [0, 0, 0, 0]);
    }

    #[test]
    fn with_three_cpus_completion_shares_with_queueing_first() {
        assert_eq!(roles(&[0, 1, 2], "XXX", 0), [0, 1, 2, 2]);
    }
}
