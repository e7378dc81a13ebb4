//! Starts the program in `examples/http`. It stands in a package of its own, because it brings a
//! web framework and a client, for which every other example here would wait.

use std::{env, process::Command};

fn main() -> std::io::Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--package", "http-payments", "--"])
        .args(env::args_os().skip(1))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()?;
    std::process::exit(status.code().unwrap_or(1));
}
