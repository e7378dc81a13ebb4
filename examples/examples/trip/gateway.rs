//! A gateway: a process that takes bookings and cancels them, and writes each of them to a log.

use std::{
    collections::HashSet,
    env,
    fs::{self, File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

use super::{Failure, agency::BookError};

/// The name of this process on its command line.
pub(super) const ROLE: &str = "--gateway";

/// A gateway that runs.
pub(super) struct Gateway {
    pub(super) address: SocketAddr,
    log: PathBuf,
    process: Child,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It has nothing to lose: its log is on disk.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Gateway {
    /// The number of bookings for a trip in its books, and how many of them are cancelled.
    pub(super) fn books(&self, trip: &str) -> Result<(usize, usize), Failure> {
        let log = fs::read_to_string(&self.log)?;
        let lines = || log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let keys: HashSet<_> = lines()
            .filter(|line| line[0] == "booked" && line[1] == trip)
            .map(|line| line[2].to_owned())
            .collect();
        let cancelled = lines().filter(|line| line[0] == "cancelled" && keys.contains(line[2]));
        Ok((keys.len(), cancelled.count()))
    }

    /// Has it refuse cancellations, or take them again.
    pub(super) fn is_out_of_order(&self, it_is: bool) -> Result<(), Failure> {
        let mark = self.log.with_extension("out-of-order");
        match it_is {
            true => fs::write(mark, "")?,
            false => fs::remove_file(mark)?,
        }
        Ok(())
    }
}

/// Starts this program again as a gateway.
pub(super) fn start(name: &str, folder: &Path) -> Result<Gateway, Failure> {
    let log = folder.join(name).with_extension("log");
    File::create(&log)?;
    let mut process = Command::new(env::current_exe()?)
        .args([ROLE.as_ref(), log.as_os_str()])
        .stdout(Stdio::piped())
        .spawn()?;
    let said = process.stdout.take().ok_or("the gateway says nothing")?;
    let mut address = String::new();
    BufReader::new(said).read_line(&mut address)?;
    Ok(Gateway {
        address: address.trim().parse()?,
        log,
        process,
    })
}

/// Serves one request at a time: `book TRIP KEY` or `cancel KEY`.
pub(super) fn run(log: &str) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    for stream in listener.incoming() {
        // A client that was killed is no reason to stop.
        if let Err(error) = serve(stream?, Path::new(log)) {
            eprintln!("a client went away: {error}");
        }
    }
    Ok(())
}

fn serve(mut stream: TcpStream, log: &Path) -> Result<(), Failure> {
    let mut request = String::new();
    BufReader::new(stream.try_clone()?).read_line(&mut request)?;
    let words: Vec<_> = request.split_whitespace().collect();
    let known = fs::read_to_string(log)?;
    let is_known = |line: &str| known.lines().any(|known| known == line);
    let is_refused = |trip: &str| trip.starts_with("no-car") && log.ends_with("car.log");
    let answer = match words[..] {
        ["book", trip, _] if is_refused(trip) => "refused no car is left".to_owned(),
        // It knows a key that it has seen, and books once.
        ["book", trip, key] => {
            let line = format!("booked {trip} {key}");
            if !is_known(&line) {
                append(log, &line)?;
            }
            format!("ok {}-1", trip)
        }
        ["cancel", _] if log.with_extension("out-of-order").exists() => "busy".to_owned(),
        ["cancel", key] => {
            let line = format!("cancelled - {key}");
            if !is_known(&line) {
                append(log, &line)?;
            }
            "ok".to_owned()
        }
        _ => "what".to_owned(),
    };
    writeln!(stream, "{answer}")?;
    Ok(())
}

fn append(log: &Path, line: &str) -> Result<(), Failure> {
    let mut log = OpenOptions::new().append(true).open(log)?;
    writeln!(log, "{line}")?;
    Ok(log.sync_data()?)
}

/// Books under a key, which the gateway knows when it comes again.
pub(super) async fn book(at: SocketAddr, trip: &str, key: &str) -> Result<String, BookError> {
    let answer = ask(at, &format!("book {trip} {key}")).await;
    let answer = answer.map_err(|error| BookError::Gateway(error.to_string()))?;
    match answer.split_once(' ') {
        Some(("ok", reference)) => Ok(reference.to_owned()),
        Some(("refused", why)) => Err(BookError::Refused(why.to_owned())),
        _ => Err(BookError::Gateway(answer)),
    }
}

/// Cancels what was booked under this key.
pub(super) async fn cancel(at: SocketAddr, key: &str) -> Result<(), Failure> {
    match ask(at, &format!("cancel {key}")).await?.as_str() {
        "ok" => Ok(()),
        answer => Err(answer.into()),
    }
}

async fn ask(at: SocketAddr, request: &str) -> std::io::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(at).await?;
    stream.write_all(format!("{request}\n").as_bytes()).await?;
    let mut answer = String::new();
    tokio::io::BufReader::new(stream)
        .read_line(&mut answer)
        .await?;
    Ok(answer.trim_end().to_owned())
}
