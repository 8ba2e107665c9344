//! The life of the process, from a checked configuration to its exit code.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lance_gateway_lake::Lake;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use super::{Lifecycle, State};
use crate::admission::Admission;
use crate::config::{Config, Loaded};
use crate::jobs::{self, Jobs};
use crate::state::Gateway;
use crate::telemetry::{Metrics, Telemetry};
use crate::transport::{self, ListenError, Listener};
use crate::{admin, lake_options, telemetry};

/// What is left of the drain time at its end, and at least what connections have to close.
const TAIL: Duration = Duration::from_secs(2);

/// A second signal, or a failure.
const FAILED: u8 = 1;

/// What ends the process with a failure.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Telemetry(#[from] telemetry::Error),
    #[error("cannot open the warehouse: {0}")]
    Lake(#[from] lance_gateway_lake::Error),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("cannot listen on {0} (admin-listen): {1}")]
    Admin(std::net::SocketAddr, std::io::Error),
    #[error(transparent)]
    Serve(#[from] transport::ServeError),
    #[error("cannot start threads for jobs: {0}")]
    Jobs(std::io::Error),
    #[error("cannot receive signals: {0}")]
    Signals(std::io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(std::io::Error),
    #[error("{0} ended early")]
    Ended(&'static str),
}

/// Runs to the end.
pub async fn run(loaded: Loaded, foreign_names: Vec<String>) -> ExitCode {
    let started = Instant::now();
    let config = Arc::new(loaded.config);
    let (telemetry, metrics) = match Telemetry::start(&config.log, &config.telemetry) {
        Ok(started) => started,
        // There is no log yet.
        Err(error) => return fail(&Error::from(error)),
    };
    if loaded.set.is_empty() {
        tracing::info!("nothing is configured: serving ./lance-warehouse on loopback");
    }
    for (key, place) in &loaded.set {
        tracing::debug!(key, place, "configured");
    }
    if !foreign_names.is_empty() {
        tracing::info!(names = foreign_names.join(","), "the environment changes how Lance itself behaves");
    }
    let code = match life(started, config, Arc::new(metrics)).await {
        Ok(code) => code,
        Err(error) => fail(&error),
    };
    // Exporters wait for their last answer, which must not keep the runtime from moving.
    if tokio::task::spawn_blocking(move || telemetry.stop()).await.is_err() {
        tracing::warn!("telemetry did not stop");
    }
    code
}

/// Tells on standard error what the log may not show.
fn fail(error: &Error) -> ExitCode {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let part = cause.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        source = cause.source();
    }
    eprintln!("lance-gateway: {text}");
    ExitCode::from(FAILED)
}

async fn life(started: Instant, config: Arc<Config>, metrics: Arc<Metrics>) -> Result<ExitCode, Error> {
    let mut signals = Signals::new()?;
    let lifecycle = Arc::new(Lifecycle::default());
    let admission = Arc::new(Admission::new(&config));
    metrics.follow(&lifecycle, &admission, config.commit.max_committable_age.get());
    let mut tasks = Tasks::default();

    // First the probes, then what they ask about.
    let admin = TcpListener::bind(config.admin_listen).await.map_err(|e| Error::Admin(config.admin_listen, e))?;
    let admin_address = admin.local_addr().map_err(|e| Error::Admin(config.admin_listen, e))?;
    let stopped = {
        let mut state = lifecycle.subscribe();
        async move {
            // An error: the process ends in any case.
            let _ = state.wait_for(|state| *state == State::Stopped).await;
        }
    };
    let serve_admin = admin::serve(admin, Arc::clone(&lifecycle), Arc::clone(&metrics), stopped);
    tasks.spawn("the admin port", async move { serve_admin.await.map_err(|e| e.to_string()) });

    let mut listeners = Vec::with_capacity(config.listen.len());
    for listen in &config.listen {
        listeners.push(Listener::bind(listen, config.connection.unix_mode).await?);
    }
    let bound = listeners.iter().map(Listener::bound).collect::<Result<Vec<_>, _>>()?;

    let lake = tokio::select! {
        lake = Lake::open(lake_options(&config)) => lake?,
        // Nothing was begun yet.
        () = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    let owner = jobs::owner(&config.maintenance, &bound).await;
    let jobs = Jobs::new(lake.clone(), &config.maintenance, &owner, Arc::clone(&lifecycle), Arc::clone(&metrics))
        .map_err(Error::Jobs)?;
    tokio::select! {
        () = jobs.recall() => {}
        () = signals.next() => return Ok(ExitCode::SUCCESS),
    }
    let gateway = Gateway {
        lake,
        config: Arc::clone(&config),
        lifecycle: Arc::clone(&lifecycle),
        admission,
        metrics: Arc::clone(&metrics),
        jobs,
        started,
    };
    let (routes, mut health) = transport::routes(&gateway)?;
    let incoming = transport::connections(listeners, &config.connection, &metrics);
    let closing = lifecycle.closing().clone().cancelled_owned();
    let serving = gateway.clone();
    tasks.spawn("the server", async move {
        transport::serve(&serving, routes, incoming, closing).await.map_err(|e| e.to_string())
    });

    lifecycle.advance(State::Serving);
    // Who reads the ready line and asks for the health must find it serving. An error: the process ends in any case.
    health.wait_for(|shown| *shown >= State::Serving).await.ok();
    let addresses: Vec<String> = bound.iter().map(ToString::to_string).collect();
    announce(&format!("{}, admin {admin_address}, warehouse {}", addresses.join(", "), config.warehouse.as_str()))?;

    tokio::select! {
        () = signals.next() => {}
        early = tasks.next() => return Err(early),
    }
    drain(&gateway, &mut signals, &mut tasks).await
}

/// The one line on standard output.
fn announce(places: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "lance-gateway {} ready: {places}", env!("CARGO_PKG_VERSION"))
        .and_then(|()| out.flush())
        .map_err(Error::Output)
}

/// Refuses new work, lets what runs end, closes. A second signal leaves at once.
async fn drain(gateway: &Gateway, signals: &mut Signals, tasks: &mut Tasks) -> Result<ExitCode, Error> {
    let lifecycle = &gateway.lifecycle;
    let end = async {
        lifecycle.advance(State::Quiescing);
        tracing::info!(running = lifecycle.running(), "stopping");
        if tokio::time::timeout(gateway.config.drain.timeout.get(), lifecycle.idle()).await.is_err() {
            tracing::warn!(running = lifecycle.running(), "drain.timeout is over: what still runs is cut");
            lifecycle.cut_work();
            // They only have to notice. A commit that does not is resolved by its client, from the table.
            if tokio::time::timeout(TAIL, lifecycle.idle()).await.is_err() {
                tracing::warn!(running = lifecycle.running(), "work is left behind");
            }
        }
        lifecycle.advance(State::Draining);
        if tokio::time::timeout(TAIL, tasks.finished("the server")).await.is_err() {
            tracing::warn!("connections are left open");
        }
        lifecycle.advance(State::Stopped);
    };
    tokio::select! {
        () = end => Ok(ExitCode::SUCCESS),
        () = signals.next() => {
            tracing::warn!("second signal: leaving at once");
            Ok(ExitCode::from(FAILED))
        }
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self, Error> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(Error::Signals)?,
            interrupt: signal(SignalKind::interrupt()).map_err(Error::Signals)?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Named tasks that must not end before the process does.
#[derive(Default)]
struct Tasks {
    set: JoinSet<(&'static str, Result<(), String>)>,
}

impl Tasks {
    fn spawn(&mut self, name: &'static str, task: impl Future<Output = Result<(), String>> + Send + 'static) {
        self.set.spawn(async move { (name, task.await) });
    }

    /// The first that ends.
    async fn next(&mut self) -> Error {
        match self.set.join_next().await {
            Some(Ok((name, result))) => {
                if let Err(error) = result {
                    tracing::error!(task = name, error, "a task ended early");
                }
                Error::Ended(name)
            }
            Some(Err(error)) => {
                tracing::error!(%error, "a task ended early");
                Error::Ended("a task")
            }
            None => Error::Ended("everything"),
        }
    }

    /// Waits for one of them.
    async fn finished(&mut self, wanted: &str) {
        while let Some(ended) = self.set.join_next().await {
            if ended.is_ok_and(|(name, _)| name == wanted) {
                return;
            }
        }
    }
}
