//! Rules between options.

use super::read::Problem;
use super::table::Config;
use super::values::Listen;

/// What is wrong though each value by itself is right.
pub(super) fn check(config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut refuse = |wrong: bool, place: &str, message: &str| {
        if wrong {
            problems.push(Problem::new(place, message));
        }
    };
    refuse(
        config.scan.batch_bytes > config.scan.max_row_bytes,
        "scan.batch-bytes",
        "must not be larger than scan.max-row-bytes",
    );
    refuse(
        config.http2.connection_window < config.http2.stream_window,
        "http2.connection-window",
        "must not be smaller than http2.stream-window",
    );
    // The commit must answer that its outcome is unknown before the call is cut.
    refuse(config.commit.timeout >= config.request.timeout, "commit.timeout", "must be shorter than request.timeout");
    for (index, listen) in config.listen.iter().enumerate() {
        let twice = config.listen[..index].contains(listen) && !matches!(listen, Listen::Tcp(a) if a.port() == 0);
        refuse(twice, "listen", &format!("names {listen} twice"));
        let admin = matches!(listen, Listen::Tcp(a) if a.port() != 0 && *a == config.admin_listen);
        refuse(admin, "listen", &format!("names {listen}, which is admin-listen"));
    }
    problems
}
