//! Calls whose outcome is not known, after a restart or an error.

use std::time::Duration;

use http::{Extensions, HeaderMap, Method, header::CONTENT_TYPE};
use reqwest::{Body, Url};
use reqwest_middleware::{ClientWithMiddleware, RequestBuilder};

use crate::call::ClientCall;
use crate::journal::{Entry, EntryId};
use crate::key::ClientKey;
use crate::policy::decide::Protection;
use crate::policy::profile::{Profile, Support};
use idempotent_runtime::Time;

/// A call that was written down, and whose end is not known here.
#[derive(Clone, Debug)]
pub struct PendingCall {
    entry: Entry,
    age: Duration,
    resend: Resend,
}

/// Stands in the extensions of a request that was made from this entry of the journal. Other
/// requests may share them, such as one that fetches a token.
#[derive(Clone, Debug)]
pub(crate) struct Resumed {
    pub(crate) id: EntryId,
    pub(crate) written: Written,
    /// How many lines of `Content-Type` were written down.
    types: usize,
}

/// The place that the bytes of such a request come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The journal had them.
    ByTheJournal,
    /// The caller has made them again.
    ByTheCaller,
}

impl Resumed {
    /// The call that a request was made from, if it was made from one. If the request has been
    /// given another type of its body, the type that was written down is taken out of it. A form
    /// that was made again names its boundary, which is another one, in a line beside it.
    pub(crate) fn settle(extensions: &Extensions, headers: &mut HeaderMap) -> Option<Self> {
        let resumed: &Self = extensions.get()?;
        let types = headers.get_all(CONTENT_TYPE).iter();
        let added: Vec<_> = types.skip(resumed.types).cloned().collect();
        if !added.is_empty() {
            headers.remove(CONTENT_TYPE);
        }
        for value in added {
            headers.append(CONTENT_TYPE, value);
        }
        Some(resumed.clone())
    }
}

/// Whether a call can be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resend {
    /// With the same key and the same bytes.
    Possible,
    /// Its key is older than the server keeps keys: sent again, it might be done twice. Find out
    /// what happened.
    TooOld,
    /// It is unknown whether its server honours keys, and its method may not be repeated: sent
    /// again, it might be done twice. Find out what happened, or
    /// [declare](crate::KeysBuilder::server) that the server does.
    Undeclared,
    /// The journal does not have its bytes. A caller that can make them again sends the call [with
    /// them](PendingCall::request_with_body).
    BodyNotKept,
}

impl PendingCall {
    pub(crate) fn new(entry: Entry, profile: &Profile, support: Support, now: Time) -> Self {
        let age = profile.age(entry.created, now);
        let protection = Protection::of(&entry.method).with_key(support);
        let resend = if age >= profile.oldest() {
            Resend::TooOld
        } else if !protection.repeats() {
            Resend::Undeclared
        } else if entry.body.is_none() {
            Resend::BodyNotKept
        } else {
            Resend::Possible
        };
        Self { entry, age, resend }
    }

    pub(crate) fn id(&self) -> &EntryId {
        &self.entry.id
    }

    /// By which begin it was the call that was listed.
    pub(crate) fn begun(&self) -> Option<&[u8; 16]> {
        self.entry.begun.as_ref()
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &ClientKey {
        &self.entry.id.key
    }

    /// The account that it is made for; empty where none was named.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.entry.id.account
    }

    /// Its method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.entry.method
    }

    /// Its target.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.entry.url
    }

    /// How old its key is: [`Duration::MAX`] if it was made later than the clock says now, by more
    /// than clocks differ. Then one of the two clocks was wrong, and the age is unknown.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.age
    }

    /// Whether it can be sent again.
    #[must_use]
    pub fn replay_plan(&self) -> Resend {
        self.resend
    }

    /// The same call with the same key and the same bytes, to be sent by `client`; `None` if it
    /// cannot be sent again. The client must have the middleware that this came from. Headers that
    /// say who is asking were never written down: put them on the request. It is not sent
    /// ([`ClientError::Withdrawn`](crate::ClientError::Withdrawn)) if it does not stand in the
    /// journal any more by then, or is over there and only its method would allow to ask the server
    /// again. Its extension names its [account](Self::account) and its [key](Self::key): a
    /// [`ClientCall`] put in its place must do so, too.
    #[must_use]
    pub fn request(&self, client: &ClientWithMiddleware) -> Option<RequestBuilder> {
        let body = self.entry.body.clone()?;
        self.request_of(client, body, Written::ByTheJournal)
    }

    /// The same, with bytes that were made again, whether the journal kept them or not
    /// ([`Resend::BodyNotKept`]). Other bytes than those that it saw are not sent
    /// ([`ClientError::KeyReusedLocally`](crate::ClientError::KeyReusedLocally)); of a stream it
    /// saw none.
    ///
    /// If the bytes are [made for each attempt](ClientCall::body_from), leave them empty here, and
    /// put a [`ClientCall`] in the place of the one that stands there. A form with parts, which
    /// `multipart` puts on the request, takes their place, too.
    #[must_use]
    pub fn request_with_body(
        &self,
        client: &ClientWithMiddleware,
        body: impl Into<Body>,
    ) -> Option<RequestBuilder> {
        self.request_of(client, body, Written::ByTheCaller)
    }

    fn request_of(
        &self,
        client: &ClientWithMiddleware,
        body: impl Into<Body>,
        written: Written,
    ) -> Option<RequestBuilder> {
        if matches!(self.resend, Resend::TooOld | Resend::Undeclared) {
            return None;
        }
        // The header of the key is among those that were written down, as it was sent. The call
        // names the key as well, because the profile may give that header another name by now.
        let call = ClientCall::new()
            .account(&self.entry.id.account)
            .key(self.entry.id.key.clone());
        let headers = self.entry.headers.clone();
        let resumed = Resumed {
            id: self.entry.id.clone(),
            written,
            types: headers.get_all(CONTENT_TYPE).iter().count(),
        };
        let request = client.request(self.entry.method.clone(), self.entry.url.clone());
        let request = request
            .headers(headers)
            .with_extension(call)
            .with_extension(resumed);
        Some(request.body(body))
    }
}
