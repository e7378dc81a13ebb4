//! The choices that rules can make.

/// How a request without a key is treated, and one with a key if keys do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Presence {
    /// A request without a key is refused.
    Required,
    /// A request without a key runs unprotected.
    Optional,
    /// Keys do not count: every request runs unprotected, and a key is ignored.
    Ignored,
    /// Keys are not supported: a request with one is refused with 501, so that its sender does not
    /// rely on it.
    Unsupported,
}

/// In which protocol a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    GrpcUnary,
}

/// The space in which a key is unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyScope {
    /// One space for each caller: a key that comes again on another route, or with another method,
    /// is refused as used.
    ///
    /// The default, because a client that sends one key twice has made a mistake, and running both
    /// would hide it: the draft forbids to reuse a key with another request.
    Caller,
    /// One space for each caller, method and path: the same key on another path is another call.
    /// For clients that derive one key from a business object and send it to several routes. Two
    /// spellings of a path are one where RFC 3986 says so (section 6.2.2): `/orders/%61` is
    /// `/orders/a`, and `%c3%a9` is `%C3%A9`.
    Route,
}

/// The part of a response that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Storage {
    /// Everything that a replay needs.
    Whole,
    /// That there was one. A retry is told that its result cannot be given. For responses that hold
    /// a secret.
    Nothing,
}

/// How a key is treated whose response went out and cannot be repeated: it was streamed, was too
/// large, is [not to be stored](Storage::Nothing), or could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnstorableResponse {
    /// A retry is told that there is a result that cannot be repeated, and the handler does not run
    /// for it.
    Refused,
    /// The key is free once the response has ended, or its client has gone away: a retry runs the
    /// handler again. Right only where doing it twice does no harm: for a search, say, or a stream
    /// of events.
    RunAgain,
}

/// How much the refusal of another request with the same key tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MismatchDetails {
    /// That it is another request.
    Hidden,
    /// In what it differs: method, target, content type, headers or body. The record is the
    /// caller's own, so it learns nothing about others, unless all callers share one scope.
    Named,
}

/// The status of a replay whose first response was 201.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplayOfCreated {
    /// 201, as the first one.
    Created,
    /// 200, because the replay creates nothing. `Location` and body are those of the first one.
    Ok,
}

/// Whether responses to requests with a key repeat it: the handler's, replays, and refusals of
/// anything except the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyEcho {
    /// They do not.
    Off,
    /// They do, as it was sent.
    Key,
}

/// How a request is treated that came in the early data of a TLS connection (`Early-Data: 1`, RFC
/// 8470), which an attacker can repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EarlyData {
    /// It is treated as any other.
    Accept,
    /// It is treated as any other if it has a key that counts, which makes a repetition harmless,
    /// or if its method only reads and is none that keys count for. Otherwise it is refused with
    /// 425, also if keys do not count for its method or on its route.
    WithKey,
}
