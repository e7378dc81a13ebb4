//! The filters of a list, as a page applies them.

use std::time::Duration;

use crate::record::{Record, State, Time};

/// The filters, checked.
pub(super) struct Filter<'a> {
    pub(super) attention: bool,
    pub(super) operation: Option<&'a str>,
    pub(super) scope: Option<&'a [u8]>,
    pub(super) key: Option<&'a [u8]>,
    pub(super) state: Option<State>,
    pub(super) older_than: Option<Duration>,
    pub(super) abandoned: bool,
    pub(super) lists: bool,
}

impl Filter<'_> {
    /// Whether it lets everything through that the index of its list has.
    pub(super) fn is_open(&self) -> bool {
        let by_index = match (self.attention, self.operation) {
            (false, None) => true,
            (true, Some(_)) => false,
            _ => self.lists,
        };
        let rest = (self.scope, self.key, self.state, self.older_than);
        by_index && rest == (None, None, None, None) && !self.abandoned
    }

    pub(super) fn lets_through(&self, record: &Record, now: Time) -> bool {
        let subject = &record.subject;
        let is_abandoned = || record.state == State::Running && record.lease_is_over(now);
        (!self.attention || record.state.needs_attention())
            && self.operation.is_none_or(|it| *it == *subject.operation)
            && self.scope.is_none_or(|it| *it == *subject.scope)
            && self.key.is_none_or(|it| *it == *subject.key)
            && self.state.is_none_or(|it| it == record.state)
            && self
                .older_than
                .is_none_or(|it| record.created.plus(it) <= now)
            && (!self.abandoned || is_abandoned())
    }
}
