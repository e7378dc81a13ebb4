//! The example runs, and shows what it made.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _it_may_have_ended = self.0.kill();
        let _it_may_have_ended = self.0.wait();
    }
}

#[test]
fn the_example_opens_the_page() {
    // The binaries of examples stand beside the folder of the tests.
    let own = env::current_exe().expect("a path");
    let folder = own.ancestors().nth(2).expect("a folder");
    let mut example = Command::new(folder.join("examples/admin"));
    let mut running = Running(example.stdout(Stdio::piped()).spawn().expect("it starts"));
    let out = running.0.stdout.take().expect("its output");
    let mut address = String::new();
    BufReader::new(out).read_line(&mut address).expect("a line");
    let host = address
        .trim()
        .trim_start_matches("http://")
        .trim_end_matches("/admin");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let request =
        format!("GET /admin/overview HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for text in [
        "payments.charge",
        "<td class=\"number\">5</td>",
        "trips.book",
        "orders.placed",
        "The audit trail",
    ] {
        assert!(answer.contains(text), "{text}: {answer}");
    }
}
