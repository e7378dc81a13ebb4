//! Maps that have a key twice.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::fingerprint;

/// The entries of a map, as a type of the application's may write them.
struct Written<'a>(&'a [(&'a str, u32)]);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[test]
fn mend_35_two_orders_of_a_key_that_a_map_has_twice_are_two_values() {
    let names: Vec<_> = (0..20).map(|name| format!("name {name}")).collect();
    for others in [0, 5, 20] {
        let others: Vec<_> = names.iter().take(others).map(|name| (&**name, 0)).collect();
        let of = |twice: [(&str, u32); 2]| {
            let [first, second] = twice;
            // The rest comes before them, between them or behind them.
            let before = [&others[..], &twice].concat();
            let between = [&[first], &others[..], &[second]].concat();
            let behind = [&twice, &others[..]].concat();
            let all = [before, between, behind].map(|map| fingerprint(&Written(&map)));
            assert!(
                all.iter().all(|one| *one == all[0]),
                "{} others",
                others.len()
            );
            *all[0].as_bytes()
        };
        let all = BTreeSet::from([
            of([("a", 1), ("a", 2)]),
            of([("a", 2), ("a", 1)]),
            of([("a", 1), ("a", 1)]),
            *fingerprint(&Written(&[&others[..], &[("a", 1)]].concat())).as_bytes(),
        ]);
        assert_eq!(all.len(), 4, "{} others", others.len());
    }
}
