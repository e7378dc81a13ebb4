//! The facts that a front end knows of a call.

use super::{Call, WaitingRoom};

impl Call {
    /// Names the template of the path that its request came by.
    #[allow(dead_code, reason = "a front end calls it, where there is one")]
    pub(crate) fn route(&mut self, route: &str) {
        self.0.route = Some(route.into());
    }

    /// Names the `traceparent` of the message that it handles.
    pub(crate) fn sent_by(&mut self, trace_parent: &str) {
        self.0.sent_by = Some(trace_parent.into());
    }

    /// Has it wait for another call only in this room.
    #[allow(dead_code, reason = "a front end calls it, where there is one")]
    pub(crate) fn waiting_room(&mut self, room: WaitingRoom) {
        self.0.room = Some(room);
    }
}
