//! What kind of call each method is.

use lance_gateway_proto::Reason;

/// How a method is admitted, and what it means that it was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Answered in every state, with no permit and no deadline of ours: health, reflection, status.
    Open,
    /// Reads, and can be called again.
    Read,
    /// Changes something, and may have done so when it is cut.
    Change,
    /// May have committed when it is cut.
    Commit,
    /// Has bounds of its own.
    Stream,
}

/// A method, known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// With its package.
    pub service: &'static str,
    /// Without its service.
    pub name: &'static str,
    /// What kind it is.
    pub class: Class,
}

const FLIGHT: &str = "arrow.flight.protocol.FlightService";
const TABLE: &str = "lancegateway.v1.TableService";
const WRITE: &str = "lancegateway.v1.WriteService";
const SEARCH: &str = "lancegateway.v1.SearchService";
const JOB: &str = "lancegateway.v1.JobService";
const INDEX: &str = "lancegateway.v1.IndexService";
const STATUS: &str = "lancegateway.v1.StatusService";
const HEALTH: &str = "grpc.health.v1.Health";
const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
const REFLECTION_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";

const fn method(service: &'static str, name: &'static str, class: Class) -> Method {
    Method { service, name, class }
}

/// All methods; a test compares them with the protos.
const METHODS: &[Method] = &[
    method(FLIGHT, "DoGet", Class::Stream),
    method(FLIGHT, "DoPut", Class::Stream),
    method(FLIGHT, "DoExchange", Class::Stream),
    method(FLIGHT, "DoAction", Class::Change),
    method(FLIGHT, "GetFlightInfo", Class::Read),
    method(FLIGHT, "PollFlightInfo", Class::Read),
    method(FLIGHT, "GetSchema", Class::Read),
    method(FLIGHT, "ListFlights", Class::Read),
    method(FLIGHT, "ListActions", Class::Read),
    method(FLIGHT, "Handshake", Class::Read),
    method(WRITE, "BeginWrite", Class::Change),
    method(WRITE, "PrepareCommit", Class::Read),
    method(WRITE, "Commit", Class::Commit),
    method(WRITE, "Abort", Class::Commit),
    method(WRITE, "GetCommit", Class::Read),
    method(WRITE, "ListCommits", Class::Read),
    method(WRITE, "DeleteRows", Class::Commit),
    method(WRITE, "UpdateRows", Class::Commit),
    method(TABLE, "CreateTable", Class::Change),
    method(TABLE, "DescribeTable", Class::Read),
    method(TABLE, "ListTables", Class::Read),
    method(TABLE, "DropTable", Class::Change),
    method(TABLE, "CountRows", Class::Read),
    method(TABLE, "ListVersions", Class::Read),
    method(TABLE, "HoldVersion", Class::Change),
    method(TABLE, "ReleaseVersion", Class::Change),
    method(TABLE, "CreateNamespace", Class::Change),
    method(TABLE, "ListNamespaces", Class::Read),
    method(TABLE, "DropNamespace", Class::Change),
    method(SEARCH, "VectorSearch", Class::Read),
    method(SEARCH, "FullTextSearch", Class::Read),
    method(SEARCH, "HybridSearch", Class::Read),
    method(JOB, "StartJob", Class::Change),
    method(JOB, "GetJob", Class::Read),
    method(JOB, "WatchJob", Class::Stream),
    method(JOB, "ListJobs", Class::Read),
    method(JOB, "CancelJob", Class::Change),
    method(INDEX, "CreateIndex", Class::Change),
    method(INDEX, "OptimizeIndex", Class::Change),
    method(INDEX, "DropIndex", Class::Change),
    method(INDEX, "ListIndexes", Class::Read),
    method(INDEX, "DescribeIndex", Class::Read),
    method(STATUS, "GetStatus", Class::Open),
    method(HEALTH, "Check", Class::Open),
    method(HEALTH, "Watch", Class::Open),
    method(REFLECTION, "ServerReflectionInfo", Class::Open),
    method(REFLECTION_ALPHA, "ServerReflectionInfo", Class::Open),
];

/// Stands for every name that the gateway does not know, so that strangers cannot make new time series.
const UNKNOWN: Method = method("unknown", "unknown", Class::Read);

impl Method {
    /// By the path of the request, `/SERVICE/METHOD`.
    pub fn of(path: &str) -> Self {
        path.strip_prefix('/')
            .and_then(|path| path.split_once('/'))
            .and_then(|(service, name)| METHODS.iter().find(|m| m.name == name && m.service == service))
            .copied()
            .unwrap_or(UNKNOWN)
    }

    /// The services that are the gateway's own, Flight among them; each once, since their methods stand together.
    pub fn services() -> impl Iterator<Item = &'static str> {
        let services = METHODS.chunk_by(|one, next| one.service == next.service).filter_map(<[Self]>::first);
        services.filter(|method| !method.is_foreign()).map(|method| method.service)
    }

    /// Whether its statuses are defined elsewhere and stay as they are.
    pub fn is_foreign(&self) -> bool {
        matches!(self.service, HEALTH | REFLECTION | REFLECTION_ALPHA)
    }

    /// Why it failed, if its time was over before it ended.
    pub fn reason_when_late(&self) -> Reason {
        match self.class {
            Class::Commit => Reason::CommitStateUnknown,
            Class::Open | Class::Read | Class::Change | Class::Stream => Reason::DeadlineExceeded,
        }
    }

    /// Why it failed, if the gateway stopped before it ended.
    pub fn reason_when_stopped(&self) -> Reason {
        match self.class {
            Class::Commit => Reason::CommitStateUnknown,
            Class::Change | Class::Stream => Reason::DeadlineExceeded,
            Class::Open | Class::Read => Reason::Draining,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use prost::Message as _;

    #[test]
    fn every_method_of_our_protos_is_known() {
        let set = prost_types::FileDescriptorSet::decode(lance_gateway_proto::FILE_DESCRIPTOR_SET).unwrap();
        let mut seen = 0;
        for file in set.file.iter().filter(|f| f.package() == "lancegateway.v1") {
            for service in &file.service {
                for m in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), m.name());
                    assert_eq!(Method::of(&path).name, m.name(), "{path}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, METHODS.iter().filter(|m| m.service.starts_with("lancegateway.v1")).count());
    }

    #[test]
    fn a_cut_commit_is_never_told_to_have_done_nothing() {
        for m in METHODS.iter().filter(|m| m.class == Class::Commit || m.class == Class::Change) {
            assert!(!m.reason_when_late().is_retriable() && !m.reason_when_stopped().is_retriable(), "{m:?}");
        }
        assert_eq!(Method::of("/lancegateway.v1.WriteService/Commit").reason_when_late(), Reason::CommitStateUnknown);
        assert_eq!(Method::of("/a/b"), UNKNOWN);
    }
}
