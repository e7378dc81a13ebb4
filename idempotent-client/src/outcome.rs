//! The facts that are known of a call that was answered.

use reqwest::Response;

use crate::key::ClientKey;

/// How a response came about. It is an extension of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientOutcome {
    /// The key that was sent, where there was one.
    pub key: Option<ClientKey>,
    /// How many attempts this process made; none where the response comes from the journal.
    pub attempts: u32,
    /// The response is that of an earlier call with this key: the server, or the journal, says so.
    pub replayed: bool,
    /// The source of the response.
    pub origin: Origin,
    /// Whether the server took notice of the key, if it said so.
    pub key_status: KeyStatus,
    /// The journal does not hold this response: it failed, or did not answer before the deadline of
    /// the call. It may still be written afterwards. Until then, the call stands open there, and is
    /// sent with its key when it is asked for again.
    pub unrecorded: bool,
}

/// The source of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The server.
    Server,
    /// This program's own journal: nothing was sent.
    Journal,
}

/// A server's word about the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyStatus {
    /// Nothing.
    Unsaid,
    /// `Idempotency-Status: ignored`. From then on, this client and its clones send no call to this
    /// origin again that may have happened, whatever the route. A call whose route ignores keys is
    /// to be sent [without](crate::ClientCall::without_key) one.
    Ignored,
    /// `Idempotency-Status: released`. It recorded nothing under the key, because nothing happened:
    /// asked again, with the same request or with one that was put right, it runs.
    Released,
    /// `Idempotency-Status: open`. The answer is about this attempt alone, which did nothing, and
    /// not about the result of the call: an earlier attempt, of any process, may have acted. No
    /// call is told that this is its outcome, and a call that has to end so stays open.
    Open,
}

impl ClientOutcome {
    /// The outcome that the response of a client with [`IdempotencyKeys`](crate::IdempotencyKeys)
    /// carries.
    #[must_use]
    pub fn from_response(response: &Response) -> Option<&Self> {
        response.extensions().get()
    }
}
