//! The floors, from the lowest up.

use super::House;

pub(super) const HOUSES: &[House] = &[House {
    folder: "idempotent-runtime/src",
    module: &[],
    floors: &[
        &["value"],
        &["record"],
        &["protocol"],
        &["store"],
        &["engine"],
        &["handle"],
        &["drive"],
        &["call"],
        &["step"],
        &["consumer"],
        &["sequence"],
        &["outbox"],
        &["http"],
        &["testing"],
        &["guide"],
    ],
    known: &[],
}];
