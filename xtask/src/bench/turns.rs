//! The turns of a round.

use anyhow::Result;

/// Has each of `count` competitors take its turn, in an order by chance: what one leaves to the system,
/// such as memory to be given back, is borne by the next, which is not always the same then. What the
/// turns returned is in the order of the competitors.
pub(super) fn in_turn<T>(count: usize, mut turn: impl FnMut(usize) -> Result<T>) -> Result<Vec<T>> {
    let mut order: Vec<usize> = (0..count).collect();
    fastrand::shuffle(&mut order);
    let turns = order.into_iter().map(|competitor| Ok((competitor, turn(competitor)?)));
    let mut turns = turns.collect::<Result<Vec<_>>>()?;
    turns.sort_by_key(|(competitor, _)| *competitor);
    Ok(turns.into_iter().map(|(_, value)| value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn all_take_a_turn_and_not_always_in_the_same_order() {
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let mut order = Vec::new();
            let squares = in_turn(3, |competitor| {
                order.push(competitor);
                Ok(competitor * competitor)
            });
            assert_eq!(squares.unwrap(), [0, 1, 4]);
            orders.insert(order);
        }
        assert!(orders.len() > 1, "{orders:?}");
    }

    #[test]
    fn a_failure_ends_the_round() {
        let mut taken = 0;
        let round = in_turn(3, |_| {
            taken += 1;
            if taken == 2 { bail!("no answer") } else { Ok(()) }
        });
        assert_eq!((round.unwrap_err().to_string().as_str(), taken), ("no answer", 2));
    }
}
