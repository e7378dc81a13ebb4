//! One call on its way: its request, its attempts, and what their answers say.

pub(crate) mod answer;
pub(crate) mod attempts;
pub(crate) mod body;
pub(crate) mod boundary;
pub(crate) mod conclude;
pub(crate) mod deadline;
pub(crate) mod failure;
pub(crate) mod outer_retry;
pub(crate) mod request_headers;
pub(crate) mod retry_after;
pub(crate) mod send;
pub(crate) mod twice;
