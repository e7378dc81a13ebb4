//! Runs a plan. A step that fails does not stop the others: one run tells everything that is wrong.

use std::{
    io::{BufRead, BufReader, IsTerminal, Read, Write},
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    plan::{Step, root},
    tally::Tally,
};

struct Done<'a> {
    step: &'a Step,
    succeeded: bool,
    tally: Tally,
    took: Duration,
}

pub(crate) fn all(steps: &[Step]) -> ExitCode {
    println!("plan");
    for (number, step) in (1..).zip(steps) {
        println!("{number:>4}  {:<25}  {}", step.title, command_line(step));
    }
    let done: Vec<Done<'_>> = steps.iter().map(one).collect();

    println!("\nresult");
    for done in &done {
        let word = if done.succeeded { "ok" } else { "FAILED" };
        let seconds = done.took.as_secs_f32();
        println!(
            "{word:>8}  {:<25}  {seconds:>6.1} s  {}",
            done.step.title, done.tally
        );
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

fn one(step: &Step) -> Done<'_> {
    println!("\n── {}: {}", step.title, command_line(step));
    let began = Instant::now();
    let (succeeded, tally) = match watch(step) {
        Ok(ended) => ended,
        Err(error) => {
            eprintln!("cannot run `{}`: {error}", command_line(step));
            (false, Tally::default())
        }
    };
    Done {
        step,
        succeeded,
        tally,
        took: began.elapsed(),
    }
}

/// Runs a step to its end, shows what it says, and counts the results in it.
fn watch(step: &Step) -> std::io::Result<(bool, Tally)> {
    let colour = if std::io::stdout().is_terminal() {
        "always"
    } else {
        "never"
    };
    let mut child = Command::new("cargo")
        .args(&step.arguments)
        .envs(step.environment.iter().map(|(name, value)| (name, value)))
        .env("CARGO_TERM_COLOR", colour)
        .current_dir(root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let errors = thread::spawn(move || echo(errors, std::io::stderr()));
    let mut tally = echo(output, std::io::stdout());
    tally += errors.join().unwrap_or_default();
    Ok((child.wait()?.success(), tally))
}

fn echo(from: Option<impl Read>, mut to: impl Write) -> Tally {
    let mut tally = Tally::default();
    let mut lines = from.map(BufReader::new);
    let mut line = Vec::new();
    while let Some(lines) = &mut lines {
        line.clear();
        if lines.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            break;
        }
        tally += Tally::of(&String::from_utf8_lossy(&line));
        // Nobody can be told that the terminal is gone.
        let _ = to.write_all(&line);
    }
    tally
}

fn command_line(step: &Step) -> String {
    let mut words: Vec<String> = step
        .environment
        .iter()
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
