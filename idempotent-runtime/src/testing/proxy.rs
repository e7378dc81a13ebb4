//! A connection to a server that can be counted, slowed and cut.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

use crate::value::lock;

/// Stands between a client and a server of any protocol that runs over TCP and answers what it is
/// asked.
///
/// It counts round trips: how often a client spoke after the server had. It can cut connections
/// where a client cannot tell what the server did. To test how your service bears a lost answer,
/// connect its store and its pool to the proxy, cut, call, call again, and count the effects.
///
/// # Examples
///
/// ```
/// # use idempotent_runtime::testing::{Disconnect, Proxy};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let server = tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
/// let proxy = Proxy::to(server).await?;
/// let url = format!("postgres://app@{}/shop", proxy.address());
/// // The server does what the next request says, and the client never hears of it.
/// proxy.cut_next(Disconnect::BeforeAnswer);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// The point at which a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disconnect {
    /// The request does not reach the server.
    BeforeRequest,
    /// Half of what the client sends first reaches the server.
    InRequest,
    /// The server answers, and the answer does not reach the client.
    BeforeAnswer,
    /// The server answers, and half of what it sends first reaches the client.
    InAnswer,
    /// The server answers, and the client hears nothing on a connection that stays open until the
    /// client closes it.
    Silence,
}

#[derive(Debug)]
struct Shared {
    server: Mutex<SocketAddr>,
    round_trips: AtomicU64,
    request_bytes: AtomicU64,
    /// A cut, and how many requests come before it.
    cut: Mutex<Option<(u64, Disconnect)>>,
    pace: Mutex<Option<Duration>>,
    /// Counts how often everything was cut.
    cuts: watch::Sender<u64>,
}

impl Proxy {
    /// Listens on a free port of this machine for connections to `server`.
    ///
    /// # Errors
    ///
    /// When there is no free port.
    pub async fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            round_trips: AtomicU64::new(0),
            request_bytes: AtomicU64::new(0),
            cut: Mutex::default(),
            pace: Mutex::default(),
            cuts: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many round trips there were on all connections so far, those of opening them included.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.shared.round_trips.load(Ordering::SeqCst)
    }

    /// How many bytes clients sent on all connections so far.
    #[must_use]
    pub fn request_bytes(&self) -> u64 {
        self.shared.request_bytes.load(Ordering::SeqCst)
    }

    /// Cuts the connection on which the next request comes.
    pub fn cut_next(&self, cut: Disconnect) {
        self.cut_after(0, cut);
    }

    /// Cuts the connection on which a request comes after `requests` others. The others may come on
    /// any connection. Opening a connection takes requests, too.
    pub fn cut_after(&self, requests: u64, cut: Disconnect) {
        *lock(&self.shared.cut) = Some((requests, cut));
    }

    /// Cancels a cut that has not come yet.
    pub fn cancel_cut(&self) {
        *lock(&self.shared.cut) = None;
    }

    /// Cuts every connection that there is.
    pub fn cut_all(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Passes bytes on one by one, each after this long; `None` passes them on as they come.
    pub fn slow_down(&self, pace: Option<Duration>) {
        *lock(&self.shared.pace) = pace;
    }

    /// Sends new connections elsewhere, as after a failover.
    pub fn move_to(&self, server: SocketAddr) {
        *lock(&self.shared.server) = server;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut_all();
    }
}

impl Shared {
    /// Whether the request that comes now is cut, and where.
    fn cut(&self) -> Option<Disconnect> {
        let mut cut = lock(&self.cut);
        match &mut *cut {
            Some((0, _)) => cut.take().map(|(_, cut)| cut),
            Some((before, _)) => {
                *before -= 1;
                None
            }
            None => None,
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = *lock(&shared.server);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let mut cuts = shared.cuts.subscribe();
            if let Ok(server) = TcpStream::connect(server).await {
                tokio::select! {
                    _ = pass(client, server, &shared) => {}
                    _ = cuts.changed() => {}
                }
            }
        });
    }
}

/// Passes everything on, until one side closes or the connection is cut.
async fn pass(client: TcpStream, server: TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut client_reads, mut client_writes) = client.into_split();
    let (mut server_reads, mut server_writes) = server.into_split();
    let (mut request, mut answer) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut asks = true;
    let mut cut = None;
    loop {
        tokio::select! {
            read = client_reads.read(&mut request) => {
                let read = some(read?)?;
                shared.request_bytes.fetch_add(read as u64, Ordering::SeqCst);
                if asks {
                    asks = false;
                    shared.round_trips.fetch_add(1, Ordering::SeqCst);
                    cut = shared.cut();
                    match cut {
                        Some(Disconnect::BeforeRequest) => return Ok(()),
                        Some(Disconnect::InRequest) => {
                            return write(&mut server_writes, &request[..read / 2], shared).await;
                        }
                        _ => {}
                    }
                }
                write(&mut server_writes, &request[..read], shared).await?;
            }
            read = server_reads.read(&mut answer) => {
                let read = some(read?)?;
                match cut {
                    Some(Disconnect::InAnswer) => {
                        return write(&mut client_writes, &answer[..read / 2], shared).await;
                    }
                    Some(Disconnect::Silence) => continue,
                    Some(_) => return Ok(()),
                    None => {}
                }
                asks = true;
                write(&mut client_writes, &answer[..read], shared).await?;
            }
        }
    }
}

async fn write(
    to: &mut (impl AsyncWriteExt + Unpin),
    bytes: &[u8],
    shared: &Shared,
) -> io::Result<()> {
    let pace = *lock(&shared.pace);
    let Some(pace) = pace else {
        return to.write_all(bytes).await;
    };
    for byte in bytes {
        tokio::time::sleep(pace).await;
        to.write_all(&[*byte]).await?;
    }
    Ok(())
}

/// Nothing to read is the end.
fn some(read: usize) -> io::Result<usize> {
    match read {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        read => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every byte with its successor, and counts what it was asked.
    async fn successor() -> (SocketAddr, Arc<AtomicU64>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let counts = Arc::clone(&counts);
                tokio::spawn(async move {
                    while let Ok(byte) = client.read_u8().await {
                        counts.fetch_add(1, Ordering::SeqCst);
                        client.write_u8(byte + 1).await.expect("an answer");
                    }
                });
            }
        });
        (address, asked)
    }

    #[tokio::test]
    async fn it_counts_and_cuts() {
        let (server, asked) = successor().await;
        let proxy = Proxy::to(server).await.expect("a proxy");
        let connect = || TcpStream::connect(proxy.address());
        let mut client = connect().await.expect("a connection");
        for _ in 0..3 {
            client.write_u8(7).await.expect("a request");
            assert_eq!(client.read_u8().await.expect("an answer"), 8);
        }
        assert_eq!(proxy.round_trips(), 3);

        for (cut, reaches) in [
            (Disconnect::BeforeRequest, 3),
            (Disconnect::InRequest, 4),
            (Disconnect::BeforeAnswer, 6),
            (Disconnect::InAnswer, 8),
        ] {
            let mut client = connect().await.expect("a connection");
            proxy.cut_next(cut);
            client.write_all(&[7, 7]).await.expect("two requests");
            let mut answers = Vec::new();
            let _how_it_ended = client.read_to_end(&mut answers).await;
            assert!(answers.len() < 2, "{cut:?}");
            while asked.load(Ordering::SeqCst) < reaches {
                tokio::task::yield_now().await;
            }
        }

        proxy.cut_after(2, Disconnect::BeforeRequest);
        let mut other = connect().await.expect("a connection");
        for one in [&mut client, &mut other] {
            one.write_u8(7).await.expect("a request");
            assert_eq!(one.read_u8().await.expect("an answer"), 8);
        }
        other.write_u8(7).await.expect("the third request");
        assert!(other.read_u8().await.is_err());

        proxy.cut_all();
        assert!(client.read_u8().await.is_err());
    }

    #[tokio::test]
    async fn a_silent_connection_stays_open() {
        let (server, asked) = successor().await;
        let proxy = Proxy::to(server).await.expect("a proxy");
        let mut client = TcpStream::connect(proxy.address())
            .await
            .expect("a connection");
        proxy.cut_next(Disconnect::Silence);
        client.write_u8(7).await.expect("a request");
        while asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        // Another connection is answered meanwhile.
        let mut other = TcpStream::connect(proxy.address())
            .await
            .expect("a connection");
        other.write_u8(1).await.expect("a request");
        assert_eq!(other.read_u8().await.expect("an answer"), 2);
        let heard = std::future::poll_fn(|cx| {
            let mut byte = [0];
            let mut byte = tokio::io::ReadBuf::new(&mut byte);
            let polled = std::pin::Pin::new(&mut client);
            std::task::Poll::Ready(
                tokio::io::AsyncRead::poll_read(polled, cx, &mut byte).is_ready(),
            )
        });
        assert!(!heard.await, "neither an answer nor the end");
    }

    #[tokio::test]
    async fn it_passes_bytes_on_one_by_one() {
        let (server, _) = successor().await;
        let proxy = Proxy::to(server).await.expect("a proxy");
        proxy.slow_down(Some(Duration::from_millis(1)));
        let mut client = TcpStream::connect(proxy.address())
            .await
            .expect("a connection");
        client.write_all(&[1, 2, 3]).await.expect("requests");
        let mut answers = [0; 3];
        client.read_exact(&mut answers).await.expect("answers");
        assert_eq!(answers, [2, 3, 4]);
    }
}
