//! Runs a plan. A step that fails does not stop the others: one run tells everything that is wrong.

use std::{
    io::{self, BufRead, BufReader, IsTerminal, Read, Write},
    process::{Command, ExitCode, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::{
    plan::{Step, root},
    servers::Servers,
    tail::Tail,
    tally::Tally,
};

struct Done<'a> {
    title: &'a str,
    succeeded: bool,
    tally: Tally,
    tail: Tail,
    took: Duration,
}

pub(crate) fn all(steps: &[Step]) -> ExitCode {
    println!("plan");
    for (number, step) in (1..).zip(steps) {
        println!(
            "{number:>4}  {:<25}  {}",
            step.title,
            command_line(step, &[])
        );
    }
    let mut done = Vec::new();
    let mut servers = None;
    if steps.iter().any(|step| step.needs_servers) {
        println!("\n── servers");
        done.push(timed("servers", || {
            servers = Some(Servers::start(&[])?);
            Ok((true, Tally::default(), Tail::default()))
        }));
    }
    let addresses = servers.as_ref().map_or(&[][..], Servers::environment);
    done.extend(steps.iter().map(|step| {
        let environment = if step.needs_servers { addresses } else { &[] };
        println!("\n── {}: {}", step.title, command_line(step, environment));
        timed(&step.title, || watch(step, environment))
    }));
    drop(servers);
    report(&done)
}

fn timed<'a>(title: &'a str, work: impl FnOnce() -> io::Result<(bool, Tally, Tail)>) -> Done<'a> {
    let began = Instant::now();
    let (succeeded, tally, tail) = work().unwrap_or_else(|error| {
        eprintln!("{error}");
        let mut tail = Tail::default();
        error.to_string().lines().for_each(|line| tail.push(line));
        (false, Tally::default(), tail)
    });
    Done {
        title,
        succeeded,
        tally,
        tail,
        took: began.elapsed(),
    }
}

fn report(done: &[Done<'_>]) -> ExitCode {
    println!("\nresult");
    for done in done {
        let word = if done.succeeded { "ok" } else { "FAILED" };
        let seconds = done.took.as_secs_f32();
        println!(
            "{word:>8}  {:<25}  {seconds:>6.1} s  {}",
            done.title, done.tally
        );
    }
    // A log may be cut at the front.
    for done in done.iter().filter(|done| !done.succeeded) {
        println!("\n── the last lines of {}, which FAILED", done.title);
        done.tail.lines().for_each(|line| println!("{line}"));
    }
    let total: Tally = done.iter().map(|done| done.tally).sum();
    let failed = done.iter().filter(|done| !done.succeeded).count();
    let steps = done.len();
    let steps = format!("{} of {steps} steps succeeded", steps - failed);
    match total.to_string().as_str() {
        "" => println!("\n{steps}"),
        total => println!("\n{total}; {steps}"),
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs a step to its end, shows what it says, and counts the results in it.
fn watch(step: &Step, environment: &[(&'static str, String)]) -> io::Result<(bool, Tally, Tail)> {
    let colour = if io::stdout().is_terminal() {
        "always"
    } else {
        "never"
    };
    let variables = step.environment.iter().chain(environment);
    let mut child = Command::new("cargo")
        .args(&step.arguments)
        .envs(variables.map(|(name, value)| (name, value)))
        .env("CARGO_TERM_COLOR", colour)
        .current_dir(root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::other(format!("cannot run cargo: {error}")))?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let tail = Mutex::default();
    let tally = thread::scope(|scope| {
        let errors = scope.spawn(|| echo(errors, io::stderr(), &tail));
        let mut tally = echo(output, io::stdout(), &tail);
        tally += errors.join().unwrap_or_default();
        tally
    });
    let mut tail = tail.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut succeeded = child.wait()?.success();
    let (passed, least) = (tally.passed, step.least_passed);
    if succeeded && passed < least {
        succeeded = false;
        let why =
            format!("{passed} tests passed, and at least {least} must: does a filter find none?");
        eprintln!("{why}");
        tail.push(&why);
    }
    Ok((succeeded, tally, tail))
}

fn echo(from: Option<impl Read>, mut to: impl Write, tail: &Mutex<Tail>) -> Tally {
    let mut tally = Tally::default();
    let mut lines = from.map(BufReader::new);
    let mut line = Vec::new();
    while let Some(lines) = &mut lines {
        line.clear();
        if lines.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        tally += Tally::of(&text);
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.push(&text);
        // If the terminal is gone, no one can be told.
        let _ = to.write_all(&line);
    }
    tally
}

fn command_line(step: &Step, environment: &[(&'static str, String)]) -> String {
    let variables = step.environment.iter().chain(environment);
    let mut words: Vec<String> = variables
        .map(|(name, value)| format!("{name}='{value}'"))
        .collect();
    words.push("cargo".to_owned());
    words.extend(step.arguments.iter().map(|argument| {
        if argument.is_empty() {
            "''".to_owned()
        } else {
            argument.clone()
        }
    }));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_in_which_too_few_tests_passed_fails_and_says_so() {
        for (least_passed, succeeds) in [(0, true), (1, false)] {
            let step = Step {
                title: "no tests".to_owned(),
                arguments: vec!["--version".to_owned()],
                environment: Vec::new(),
                needs_servers: false,
                least_passed,
            };

            let (succeeded, _, tail) = watch(&step, &[]).expect("cargo runs");

            assert_eq!(succeeded, succeeds);
            let said = tail.lines().last().expect("it says something");
            assert_ne!(said.contains("at least 1 must"), succeeds, "{said}");
        }
    }
}
