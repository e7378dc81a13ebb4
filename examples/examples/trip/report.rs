//! The report: it reads the figures back from the logs of the gateways.

use std::process::ExitCode;

use super::{Failure, gateway::Gateway, plan::GATEWAYS};

/// Counts what is wrong.
#[derive(Default)]
pub(super) struct Report {
    wrong: u32,
    kills: u32,
}

impl Report {
    /// Notes a kill, where the desk had come to its place.
    pub(super) fn killed(&mut self, has_come_there: bool) {
        self.kills += u32::from(has_come_there);
    }

    /// Says how a trip ended.
    pub(super) fn trip(&mut self, which: &str, ended: &str, expected: &str) {
        let mark = self.check(ended == expected);
        println!("A trip, {which}: {ended}{mark}");
    }

    /// Says what the gateways have in their books for it: bookings, and how many are cancelled.
    pub(super) fn books(
        &mut self,
        gateways: &[Gateway; 3],
        trip: &str,
        expected: [(usize, usize); 3],
    ) -> Result<(), Failure> {
        for ((name, gateway), expected) in GATEWAYS.into_iter().zip(gateways).zip(expected) {
            let (booked, cancelled) = gateway.books(trip)?;
            let mark = self.check((booked, cancelled) == expected);
            println!("  {name:<8}{booked} booked, {cancelled} cancelled{mark}");
        }
        println!();
        Ok(())
    }

    fn check(&mut self, is_right: bool) -> &'static str {
        self.wrong += u32::from(!is_right);
        if is_right { "" } else { "   WRONG" }
    }

    /// Says whether all of it was right.
    pub(super) fn end(mut self) -> ExitCode {
        let mark = self.check(self.kills == 4);
        println!(
            "The desk was killed {} times with SIGKILL.{mark}",
            self.kills
        );
        match self.wrong {
            0 => {
                println!("Each trip is booked once as a whole, or undone once as a whole.");
                ExitCode::SUCCESS
            }
            wrong => {
                println!("WRONG: {wrong} figures.");
                ExitCode::FAILURE
            }
        }
    }
}
