//! The built binary, run as users run it.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic_types::StatusExt as _;

/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}

/// The binary with a clean environment, in a folder of its own.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lance-gateway"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LANCE_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// What a run that ends by itself leaves.
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub async fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), arguments, environment).await
}

pub async fn run_in(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let output = command(folder).args(arguments).envs(environment.iter().copied()).output();
    let output = soon("the end of the process", output).await.unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running gateway on free ports.
pub struct Gateway {
    child: Child,
    pub ready_line: String,
    pub grpc: SocketAddr,
    pub admin: SocketAddr,
    pub folder: TempDir,
    stdout: BufReader<ChildStdout>,
    stderr: JoinHandle<String>,
}

impl Gateway {
    pub async fn start(environment: &[(&str, &str)]) -> Self {
        Self::start_with(&["--listen", "127.0.0.1:0"], environment).await
    }

    pub async fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), arguments, environment).await
    }

    pub async fn start_in(folder: TempDir, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = command(folder.path())
            .args(["--admin-listen", "127.0.0.1:0"])
            .args(arguments)
            .envs(environment.iter().copied())
            .spawn()
            .unwrap();
        let mut errors = child.stderr.take().unwrap();
        let stderr = tokio::spawn(async move {
            let mut text = String::new();
            errors.read_to_string(&mut text).await.unwrap();
            text
        });
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready_line = String::new();
        soon("the ready line", stdout.read_line(&mut ready_line)).await.unwrap();
        if ready_line.is_empty() {
            panic!("the gateway did not start: {}", stderr.await.unwrap());
        }
        let address = |name: &str| {
            let rest = ready_line.split_once(name).unwrap_or_else(|| panic!("no {name}in {ready_line}")).1;
            rest.split(',').next().unwrap().parse().unwrap()
        };
        let (grpc, admin) = (address("grpc "), address("admin "));
        Self { child, grpc, admin, ready_line, folder, stdout, stderr }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap().connect().await.unwrap()
    }

    /// `GET` on the admin port: the code and the page.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.admin).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: admin\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        soon("an answer of the admin port", stream.read_to_string(&mut answer)).await.unwrap();
        let (head, page) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), page.to_owned())
    }

    /// Asks until the admin port answers so.
    pub async fn wait_for(&self, path: &str, answer: impl Fn(u16, &str) -> bool) {
        let mut last = (0, String::new());
        let asked = tokio::time::timeout(PATIENCE, async {
            while !answer(last.0, &last.1) {
                last = self.get(path).await;
            }
        });
        if asked.await.is_err() {
            panic!("{path} still answers {} {}", last.0, last.1);
        }
    }

    pub async fn signal(&self, name: &str) {
        let pid = self.child.id().expect("the process runs");
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().await.unwrap();
        assert!(status.success());
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// The exit status, the rest of standard output, and standard error.
    pub async fn end(mut self) -> (ExitStatus, String, String) {
        let status = soon("the end of the process", self.child.wait()).await.unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).await.unwrap();
        (status, rest, self.stderr.await.unwrap())
    }

    pub async fn terminate(self) -> (Option<i32>, String, String) {
        self.signal("TERM").await;
        let (status, stdout, stderr) = self.end().await;
        (status.code(), stdout, stderr)
    }
}

/// A channel over a Unix socket.
pub async fn unix_channel(path: &Path) -> Channel {
    let path = path.to_owned();
    Endpoint::from_static("http://localhost")
        .connect_with_connector(tower::service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(hyper_util::rt::TokioIo::new) }
        }))
        .await
        .unwrap()
}

/// The reason in a status.
pub fn reason(status: &tonic::Status) -> String {
    let details = status.get_error_details();
    details.error_info().unwrap_or_else(|| panic!("no reason in {status:?}")).reason.clone()
}
