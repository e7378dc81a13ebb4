use std::collections::HashSet;

use super::Kind;

#[test]
fn every_kind_has_a_slug_of_its_own_and_a_heading_in_the_documentation() {
    let text = include_str!("mod.rs");
    let slugs: HashSet<_> = Kind::ALL.iter().map(|kind| kind.slug()).collect();
    assert_eq!(slugs.len(), Kind::ALL.len());
    for slug in slugs {
        assert!(text.contains(&format!("//! # {slug}\n")), "{slug}");
    }
}
