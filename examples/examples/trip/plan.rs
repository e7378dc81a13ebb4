//! The plan: three trips, and where the desk is killed in each.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
};

use super::{
    Failure,
    desk::{self, Work},
    gateway::Gateway,
    report::Report,
};

/// The gateways, in the order in which a trip is booked.
pub(super) const GATEWAYS: [&str; 3] = ["flight", "hotel", "car"];

/// The agency at which the desk books.
pub(super) struct Agency {
    pub(super) file: PathBuf,
    pub(super) gateways: [SocketAddr; 3],
    pub(super) protected: bool,
}

/// A desk that is killed with SIGKILL in every step once, when its booking stands and is not
/// recorded. One booking each stands at the end.
pub(super) fn killed_at_every_step(
    agency: &Agency,
    gateways: &[Gateway; 3],
    report: &mut Report,
) -> Result<(), Failure> {
    let trip = "trip";
    for step in GATEWAYS {
        report.killed(agency.kill_at(trip, step)?);
    }
    let ended = agency.book(trip)?;
    report.trip("killed in each of its three steps", &ended, "booked");
    report.books(gateways, trip, [(1, 0); 3])
}

/// A trip whose car is refused. The desk is killed in the undo of the hotel.
pub(super) fn killed_while_it_undoes(
    agency: &Agency,
    gateways: &[Gateway; 3],
    report: &mut Report,
) -> Result<(), Failure> {
    let trip = "no-car";
    report.killed(agency.kill_at(trip, "undo hotel")?);
    let ended = agency.book(trip)?;
    let refused = "refused: no car is left";
    report.trip(
        "its car is refused; killed while it undoes",
        &ended,
        refused,
    );
    report.books(gateways, trip, [(1, 1), (1, 1), (0, 0)])
}

/// A trip whose car is refused, at a hotel that takes no cancellation. The call is parked, and
/// resumed by this program once the hotel takes them again.
pub(super) fn parked_and_resumed(
    agency: &Agency,
    gateways: &[Gateway; 3],
    report: &mut Report,
) -> Result<(), Failure> {
    let trip = "no-car-again";
    gateways[1].is_out_of_order(true)?;
    let ended = agency.book(trip)?;
    report.trip("its hotel cannot be cancelled", &ended, "not undone: hotel");
    report.books(gateways, trip, [(1, 1), (1, 0), (0, 0)])?;
    gateways[1].is_out_of_order(false)?;
    let ended = agency.resume(trip)?;
    report.trip("resumed by this program", &ended, "refused: no car is left");
    report.books(gateways, trip, [(1, 1), (1, 1), (0, 0)])
}

impl Agency {
    /// Has a desk book, and kills it where it says that it has come there. Returns whether it did.
    fn kill_at(&self, trip: &str, place: &str) -> Result<bool, Failure> {
        let said = self.desk(trip, Some(place), false)?;
        Ok(said == place)
    }

    /// Has a desk book, and gives what it says of the end.
    fn book(&self, trip: &str) -> Result<String, Failure> {
        self.desk(trip, None, false)
    }

    fn resume(&self, trip: &str) -> Result<String, Failure> {
        self.desk(trip, None, self.protected)
    }

    /// Starts this program again as the desk, and gives the first line that it says. A desk that
    /// has stopped is killed there.
    fn desk(&self, trip: &str, stops_at: Option<&str>, resumes: bool) -> Result<String, Failure> {
        let mut desk = Command::new(env::current_exe()?)
            .arg(desk::ROLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let work = Work {
            file: self.file.clone(),
            gateways: self.gateways,
            protected: self.protected,
            trip: trip.to_owned(),
            stops_at: stops_at.map(str::to_owned),
            resumes,
        };
        let mut input = desk.stdin.take().ok_or("the desk hears nothing")?;
        input.write_all(&serde_json::to_vec(&work)?)?;
        drop(input);
        let mut said = String::new();
        let output = desk.stdout.take().ok_or("the desk says nothing")?;
        BufReader::new(output).read_line(&mut said)?;
        if stops_at == Some(said.trim_end()) {
            desk.kill()?;
            desk.wait()?;
        } else if !desk.wait()?.success() {
            return Err("the desk failed".into());
        }
        Ok(said.trim_end().to_owned())
    }
}
