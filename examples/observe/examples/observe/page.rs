//! The page on which the metrics are, and how it is read.

use std::{net::SocketAddr, time::Duration};

use idempotent_runtime::BoxError;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// Answers each request with the metrics, as an endpoint of a web framework would.
pub async fn serve(prometheus: PrometheusHandle) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _the_path_is_of_no_matter = stream.read(&mut request).await;
            let text = prometheus.render();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                text.len()
            );
            let _the_reader_may_be_gone = stream.write_all((head + &text).as_bytes()).await;
        }
    });
    Ok(address)
}

async fn read(address: SocketAddr) -> Result<String, BoxError> {
    let mut stream = TcpStream::connect(address).await?;
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

fn value(text: &str, sample: &str) -> Option<f64> {
    let of = |line: &str| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok();
    text.lines().find_map(of)
}

/// Reads the metrics, and compares them with what has happened. Gauges follow after a moment.
pub async fn compare(address: SocketAddr, expected: &[(String, f64)]) -> Result<bool, BoxError> {
    let is_right = |text: &str| {
        let mut samples = expected.iter();
        samples.all(|(sample, expected)| value(text, sample) == Some(*expected))
    };
    let mut text = read(address).await?;
    for _ in 0..50 {
        if is_right(&text) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        text = read(address).await?;
    }
    for (sample, expected) in expected {
        let shown = value(&text, sample);
        let mark = if shown == Some(*expected) {
            ""
        } else {
            "   WRONG"
        };
        let shown = shown.map_or("nothing".to_owned(), |value| value.to_string());
        println!(
            "{sample} {shown}{mark}{}",
            if mark.is_empty() {
                String::new()
            } else {
                format!(": it was {expected}")
            }
        );
    }
    let is_right = is_right(&text);
    println!(
        "{}",
        if is_right {
            "The metrics show what happened."
        } else {
            "The metrics show something else than happened."
        }
    );
    Ok(is_right)
}
