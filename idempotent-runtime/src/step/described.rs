//! A step, described: what is known of it before it begins.

use crate::{fingerprint::Arguments, key::KeyError, policy::OnCrash, record::StepName};

/// What a step is called, and what it chose.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) label: &'static str,
    pub(super) name: Result<StepName, KeyError>,
    pub(super) arguments: Arguments,
    pub(super) version: u32,
    pub(super) on_crash: OnCrash,
}
