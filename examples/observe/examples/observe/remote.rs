//! Another server, which loses answers, and the client that calls it.

use std::{net::SocketAddr, time::Duration};

use idempotent_client::{
    Budget, ClientCall, ClientError, IdempotencyKeys, Intent, Limits, Profile,
    metrics::MetricsObserver,
};
use idempotent_runtime::BoxError;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// The client of the service, and the server that it calls.
pub struct Remote {
    pub client: ClientWithMiddleware,
    pub keys: IdempotencyKeys,
    pub address: SocketAddr,
}

impl Remote {
    pub async fn start() -> Result<Self, BoxError> {
        let limits = Limits::default()
            .attempts(2)
            .budget(Budget::new(1_000, 1.0));
        let pause = Duration::from_millis(5);
        let (http, keys) = IdempotencyKeys::builder(Profile::ietf())
            .limits(limits.backoff(pause, pause))
            .observer(MetricsObserver::new())
            .build(reqwest::Client::builder())?;
        let client = ClientBuilder::new(http).with(keys.clone()).build();
        let address = serve().await?;
        Ok(Self {
            client,
            keys,
            address,
        })
    }

    /// Pays, and the first answer is lost. Then it asks for a refund, and no answer comes at all.
    pub async fn round(&self, round: u32) -> Result<(), BoxError> {
        let call = |operation: &str| {
            let url = format!("http://{}/{operation}", self.address);
            let call = ClientCall::new().intent(Intent::new(operation, &round.to_string()));
            self.client.post(url).with_extension(call).send()
        };
        call("pay").await?;
        let refund = call("refund").await.expect_err("its answer is lost");
        let unknown = ClientError::from_error(&refund);
        assert!(
            matches!(unknown, Some(ClientError::Unknown { .. })),
            "{refund:?}"
        );
        Ok(())
    }
}

/// Loses the first answer of each payment, and those of all refunds.
async fn serve() -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let mut payments = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let read = stream.read(&mut request).await.unwrap_or(0);
            if !request[..read].starts_with(b"POST /pay ") {
                continue;
            }
            payments += 1;
            if payments % 2 == 0 {
                let answer =
                    b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _the_client_may_be_gone = stream.write_all(answer).await;
            }
        }
    });
    Ok(address)
}
