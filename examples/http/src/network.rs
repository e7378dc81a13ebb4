//! The network between the client and the service.

use std::{io, net::SocketAddr};

use idempotent_runtime::testing::{Disconnect, Proxy};

/// The trouble that the next request meets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    None,
    RequestLost,
    CutInRequest,
    AnswerLost,
    CutInAnswer,
    Silence,
}

impl Trouble {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Trouble::None => "all is well",
            Trouble::RequestLost => "the request is lost",
            Trouble::CutInRequest => "cut in the request",
            Trouble::AnswerLost => "the answer is lost",
            Trouble::CutInAnswer => "cut in the answer",
            Trouble::Silence => "silence, until the client's time-out",
        }
    }
}

pub(crate) struct Network(Proxy);

impl Network {
    pub(crate) async fn to(service: SocketAddr) -> io::Result<Self> {
        Proxy::to(service).await.map(Self)
    }

    /// The address at which the client finds the service.
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address()
    }

    pub(crate) fn next(&self, trouble: Trouble) {
        let cut = match trouble {
            Trouble::None => return,
            Trouble::RequestLost => Disconnect::BeforeRequest,
            Trouble::CutInRequest => Disconnect::InRequest,
            Trouble::AnswerLost => Disconnect::BeforeAnswer,
            Trouble::CutInAnswer => Disconnect::InAnswer,
            Trouble::Silence => Disconnect::Silence,
        };
        self.0.cut_next(cut);
    }
}
