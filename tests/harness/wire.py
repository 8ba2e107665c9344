"""The doors of the gateway from Python: pyarrow.flight for rows, gRPC for decisions."""

import importlib
import json
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import grpc
import pyarrow as pa
import pyarrow.flight as flight
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc

from . import paths


def _generate() -> None:
    """Python code for proto/, made anew so that it is always that of this checkout."""
    out = tempfile.mkdtemp(prefix="lance-gateway-proto-")
    sources = sorted(str(p) for p in (paths.ROOT / "proto").rglob("*.proto"))
    well_known = Path(protoc.__file__).parent / "_proto"
    includes = [f"-I{paths.ROOT / 'proto'}", f"-I{well_known}"]
    code = protoc.main(["protoc", *includes, f"--python_out={out}", f"--grpc_python_out={out}", *sources])
    if code != 0:
        raise RuntimeError("the protocol does not compile")
    sys.path.insert(0, out)


_generate()
index_pb2 = importlib.import_module("lancegateway.v1.index_pb2")
indexes_pb2 = importlib.import_module("lancegateway.v1.index_service_pb2")
jobs_pb2 = importlib.import_module("lancegateway.v1.job_service_pb2")
scan_pb2 = importlib.import_module("lancegateway.v1.scan_pb2")
search_pb2 = importlib.import_module("lancegateway.v1.search_pb2")
searches_pb2 = importlib.import_module("lancegateway.v1.search_service_pb2")
status_service_pb2 = importlib.import_module("lancegateway.v1.status_service_pb2")
table_pb2 = importlib.import_module("lancegateway.v1.table_pb2")
tables_pb2 = importlib.import_module("lancegateway.v1.table_service_pb2")
write_pb2 = importlib.import_module("lancegateway.v1.write_service_pb2")
_indexes_grpc = importlib.import_module("lancegateway.v1.index_service_pb2_grpc")
_jobs_grpc = importlib.import_module("lancegateway.v1.job_service_pb2_grpc")
_search_grpc = importlib.import_module("lancegateway.v1.search_service_pb2_grpc")
_status_grpc = importlib.import_module("lancegateway.v1.status_service_pb2_grpc")
_tables_grpc = importlib.import_module("lancegateway.v1.table_service_pb2_grpc")
_write_grpc = importlib.import_module("lancegateway.v1.write_service_pb2_grpc")


class _Details(flight.ClientMiddleware):
    """Keeps the error details of Flight calls: pyarrow gives them on with some kinds of errors only."""

    last = b""

    def received_headers(self, headers: dict) -> None:
        for value in headers.get("grpc-status-details-bin", ()):
            _Details.last = value


class _DetailsFactory(flight.ClientMiddlewareFactory):
    def start_call(self, info: flight.CallInfo) -> flight.ClientMiddleware:
        return _Details()


STORAGE_OPTIONS = "lance-gateway-storage-options-bin"


class _Storage(flight.ClientMiddleware, flight.ClientMiddlewareFactory, grpc.UnaryUnaryClientInterceptor):
    """Sends storage options with each call."""

    def __init__(self, options: dict[str, str]):
        super().__init__()
        self.message = table_pb2.StorageOptions(options=options).SerializeToString()

    def start_call(self, info: flight.CallInfo) -> flight.ClientMiddleware:
        return self

    def sending_headers(self) -> dict:
        return {STORAGE_OPTIONS: [self.message]}

    def intercept_unary_unary(self, continuation: Callable, details: grpc.ClientCallDetails, request: object) -> object:
        metadata = [*(details.metadata or ()), (STORAGE_OPTIONS, self.message)]
        return continuation(details._replace(metadata=metadata), request)


def _details(error: grpc.RpcError) -> bytes:
    return dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")


def retry_delay(error: grpc.RpcError) -> float:
    """Seconds after which the call may be repeated, as its google.rpc.RetryInfo says."""
    for detail in status_pb2.Status.FromString(_details(error)).details:
        info = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            return info.retry_delay.ToTimedelta().total_seconds()
    raise AssertionError(f"an error without a retry hint: {error!r}")


def reason(error: BaseException) -> str:
    """The reason in the google.rpc.ErrorInfo of an error that was met just now."""
    if isinstance(error, grpc.RpcError):
        packed = _details(error)
    else:
        packed, _Details.last = _Details.last, b""
    for detail in status_pb2.Status.FromString(packed).details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return info.reason
    raise AssertionError(f"an error without a reason: {error!r}")


def denied(call, *args) -> str:
    """Reason of the refusal that the call must meet over gRPC."""
    try:
        answer = call(*args)
    except grpc.RpcError as error:
        return reason(error)
    raise AssertionError(f"it was not refused, but answered {answer}")


def epoch() -> str:
    """A fresh id, for epochs, runs and requests."""
    return str(uuid.uuid4())


def table(name: str) -> table_pb2.Table:
    """A table by URI, or by name; dots part the namespaces."""
    if "://" in name:
        return table_pb2.Table(uri=name)
    return table_pb2.Table(name=table_pb2.TableName(parts=name.split(".")))


def command(name: str, **more: object) -> flight.FlightDescriptor:
    """A scan as people send it: JSON."""
    table = {"uri": name} if "://" in name else {"name": {"parts": name.split(".")}}
    return flight.FlightDescriptor.for_command(json.dumps({"table": table, **more}))


def schema_message(schema: pa.Schema) -> bytes:
    """An encapsulated Arrow IPC schema message."""
    return schema.serialize().to_pybytes()


def _column(path: str | list[str]) -> table_pb2.Column:
    return table_pb2.Column(path=[path] if isinstance(path, str) else path)


def _vector(vector: list[float] | search_pb2.Vector) -> search_pb2.Vector:
    if isinstance(vector, search_pb2.Vector):
        return vector
    return search_pb2.Vector(float32=search_pb2.Float32Values(values=vector))


def _parts(request: type, more: dict) -> tuple[dict, dict]:
    """What belongs to the request, and the rest, which belongs to its query."""
    of_request = {key: value for key, value in more.items() if key in request.DESCRIPTOR.fields_by_name}
    if isinstance(of_request.get("filter"), str):
        of_request["filter"] = table_pb2.Filter(sql=of_request["filter"])
    return of_request, {key: value for key, value in more.items() if key not in of_request}


def _found(response: object) -> tuple[pa.Table, search_pb2.SearchInfo]:
    rows = pa.ipc.open_stream(response.rows).read_all()
    assert rows.num_rows == response.info.num_rows
    return rows, response.info


class Client:
    """All doors of one gateway."""

    def __init__(self, address: str, storage: dict[str, str] | None = None):
        """`storage`: storage options that go with each call."""
        more = [_Storage(storage)] if storage else []
        self.flight = flight.connect(f"grpc://{address}", middleware=[_DetailsFactory(), *more])
        # A connection of its own: else it would wait with those that saw the gateway die.
        options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        self.channel = grpc.insecure_channel(address, options=options)
        if more:
            self.channel = grpc.intercept_channel(self.channel, *more)
        self.tables = _tables_grpc.TableServiceStub(self.channel)
        self.writes = _write_grpc.WriteServiceStub(self.channel)
        self.jobs = _jobs_grpc.JobServiceStub(self.channel)
        self.indexes = _indexes_grpc.IndexServiceStub(self.channel)
        self.searches = _search_grpc.SearchServiceStub(self.channel)
        self.status = _status_grpc.StatusServiceStub(self.channel)

    def close(self) -> None:
        self.flight.close()
        self.channel.close()

    # Rows in.

    def put(self, name: str, rows: pa.Table, chunk: int | None = None) -> write_pb2.PutAck:
        """An ad-hoc DoPut by PATH."""
        return self.put_to(flight.FlightDescriptor.for_path(*name.split(".")), rows, chunk)

    def put_to(self, descriptor: flight.FlightDescriptor, rows: pa.Table, chunk: int | None = None) -> write_pb2.PutAck:
        return write_pb2.PutAck.FromString(self._do_put(descriptor, rows, chunk)[-1])

    def stage(self, write: bytes, rows: pa.Table, chunk: int | None = None, max_rows_per_file: int = 0) -> bytes:
        """What was staged, opaque."""
        request = write_pb2.StageRequest(write=write, max_rows_per_file=max_rows_per_file)
        staging = write_pb2.PutCommand(stage=request)
        descriptor = flight.FlightDescriptor.for_command(staging.SerializeToString())
        last = write_pb2.StageAck.FromString(self._do_put(descriptor, rows, chunk)[-1])
        assert last.done and last.num_rows == rows.num_rows == last.num_durable_rows, last
        return last.staged

    def _do_put(self, descriptor: flight.FlightDescriptor, rows: pa.Table, chunk: int | None) -> list[bytes]:
        writer, reader = self.flight.do_put(descriptor, rows.schema)
        try:
            writer.write_table(rows, chunk)
            writer.done_writing()
            acks = []
            while (ack := reader.read()) is not None:
                acks.append(ack.to_pybytes())
        finally:
            writer.close()
        return acks

    # Writing once.

    def begin(self, name: str, schema: pa.Schema | None = None, **more: object) -> write_pb2.BeginWriteResponse:
        request = write_pb2.BeginWriteRequest(
            request_id=str(uuid.uuid4()),
            table=table(name),
            schema=schema_message(schema) if schema else b"",
            create=tables_pb2.CreateOptions() if schema else None,
            **more,
        )
        return self.writes.BeginWrite(request)

    def prepare(self, epoch: str, seq: int, write: bytes, *staged: bytes) -> bytes:
        """The committable."""
        commit = write_pb2.CommitId(epoch=epoch, seq=seq)
        return self.writes.PrepareCommit(
            write_pb2.PrepareCommitRequest(id=commit, write=write, staged=staged)
        ).committable

    def commit(self, committable: bytes) -> write_pb2.CommitResponse:
        return self.writes.Commit(write_pb2.CommitRequest(committable=committable))

    # Changes of rows that are there.

    def merge(self, name: str, rows: pa.Table, **how: object) -> dict:
        """A DoPut that merges, as people send it; what it answers."""
        table = {"uri": name} if "://" in name else {"name": {"parts": name.split(".")}}
        command = json.dumps({"merge": {"table": table, **how}})
        return json.loads(self._do_put(flight.FlightDescriptor.for_command(command), rows, None)[-1])

    def delete(self, name: str, sql: str | None = None, **more: object) -> write_pb2.DeleteRowsResponse:
        filter_ = table_pb2.Filter(sql=sql) if sql else None
        return self.writes.DeleteRows(write_pb2.DeleteRowsRequest(table=table(name), filter=filter_, **more))

    def update(self, name: str, sql: str | None, /, *, version: int | None = None, request_id: str = "", **columns):
        """Sets columns to SQL."""
        filter_ = table_pb2.Filter(sql=sql) if sql else None
        set_ = [write_pb2.Assignment(column=column, sql=value) for column, value in columns.items()]
        request = write_pb2.UpdateRowsRequest(
            request_id=request_id, table=table(name), filter=filter_, version=version, assignments=set_
        )
        return self.writes.UpdateRows(request)

    # Work in the background.

    def start_job(self, name: str, **kind: object) -> jobs_pb2.Job:
        """A job as it begins: `compaction`, `cleanup` or `sweep` with its message."""
        request = jobs_pb2.StartJobRequest(request_id=str(uuid.uuid4()), table=table(name), **kind)
        return self.jobs.StartJob(request).job

    def end_of_job(self, job: str) -> jobs_pb2.Job:
        """A job at its end, by watching it."""
        *_, last = self.jobs.WatchJob(jobs_pb2.WatchJobRequest(id=job))
        return last.job

    def run_job(self, name: str, **kind: object) -> jobs_pb2.Job:
        """A job that was started and has succeeded."""
        job = self.end_of_job(self.start_job(name, **kind).id)
        assert job.state == jobs_pb2.JOB_STATE_SUCCEEDED, job
        return job

    # Indexes.

    def start_index(self, name: str, column: str, /, **build: object) -> jobs_pb2.Job:
        """The build as it begins: `vector`, `scalar` or `full_text` with its message."""
        build = index_pb2.IndexBuild(column=table_pb2.Column(path=[column]), **build)
        request = indexes_pb2.CreateIndexRequest(request_id=str(uuid.uuid4()), table=table(name), build=build)
        return self.indexes.CreateIndex(request).job

    def index(self, name: str, column: str, /, **build: object) -> jobs_pb2.Job:
        """The build at its end."""
        return self.end_of_job(self.start_index(name, column, **build).id)

    def optimize(self, name: str, **how: object) -> jobs_pb2.Job:
        """An optimization at its end."""
        how = index_pb2.IndexOptimization(**how)
        request = indexes_pb2.OptimizeIndexRequest(request_id=str(uuid.uuid4()), table=table(name), optimization=how)
        return self.end_of_job(self.indexes.OptimizeIndex(request).job.id)

    def indexes_of(self, name: str) -> dict[str, indexes_pb2.IndexStatistics]:
        found = self.indexes.ListIndexes(indexes_pb2.ListIndexesRequest(table=table(name))).indexes
        return {index.name: index for index in found}

    # Rows out.

    def plan(self, name: str, **more: object) -> flight.FlightInfo:
        return self.flight.get_flight_info(command(name, **more))

    def read(self, info: flight.FlightInfo) -> pa.Table:
        """All splits of a plan."""
        parts = [self.flight.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints]
        return pa.concat_tables(parts) if parts else info.schema.empty_table()

    def scan(self, name: str, **more: object) -> pa.Table:
        return self.read(self.plan(name, **more))

    # Searches.

    def nearest(
        self, name: str, column: str | list[str], vector: list[float] | search_pb2.Vector, k: int = 10, **more: object
    ) -> tuple[pa.Table, search_pb2.SearchInfo]:
        """A VectorSearch; `filter` is SQL."""
        request, query = _parts(searches_pb2.VectorSearchRequest, more)
        request = searches_pb2.VectorSearchRequest(
            table=table(name),
            query=search_pb2.VectorQuery(column=_column(column), vector=_vector(vector), k=k, **query),
            **request,
        )
        return _found(self.searches.VectorSearch(request))

    def best(self, name: str, query: dict, k: int = 10, **more: object) -> tuple[pa.Table, search_pb2.SearchInfo]:
        """A FullTextSearch; `query` is a TextQuery."""
        request, own = _parts(searches_pb2.FullTextSearchRequest, more)
        texts = search_pb2.FullTextQuery(query=search_pb2.TextQuery(**query), k=k, **own)
        request = searches_pb2.FullTextSearchRequest(table=table(name), query=texts, **request)
        return _found(self.searches.FullTextSearch(request))

    def both(
        self, name: str, vector: search_pb2.VectorQuery, text: search_pb2.FullTextQuery, **more: object
    ) -> tuple[pa.Table, search_pb2.SearchInfo]:
        """A HybridSearch."""
        request, own = _parts(searches_pb2.HybridSearchRequest, more)
        query = search_pb2.HybridQuery(vector=vector, text=text, **own)
        request = searches_pb2.HybridSearchRequest(table=table(name), query=query, **request)
        return _found(self.searches.HybridSearch(request))

    def exchange(self, name: str, queries: pa.Table, **more: object) -> dict[int, tuple[dict, list[dict]]]:
        """Many searches on one stream: by the id of the query what is said of its answer, and the rows."""
        command = {"search": {"table": {"name": {"parts": name.split(".")}}, **more}}
        writer, reader = self.flight.do_exchange(flight.FlightDescriptor.for_command(json.dumps(command)))
        with writer:
            writer.begin(queries.schema)
            writer.write_table(queries)
            writer.done_writing()
            ids, answers, last = queries["id"].to_pylist(), {}, None
            for chunk in reader:
                if chunk.app_metadata is not None:
                    said = json.loads(chunk.app_metadata.to_pybytes())
                    last = ids[said["query"]]
                    answers[last] = (said, [])
                rows = chunk.data.to_pylist()
                assert {row.pop("_query") for row in rows} <= {last}
                answers[last][1].extend(rows)
        return answers

    def lookup(
        self, name: str, columns: list[str | list[str]], *batches: pa.RecordBatch, **more: object
    ) -> list[tuple[dict, list[dict]]]:
        """Keys on one stream: of each batch what is said of its answer, and its rows."""
        keys = [{"path": [column] if isinstance(column, str) else column} for column in columns]
        command = {"lookup": {"table": {"name": {"parts": name.split(".")}}, "keys": keys, **more}}
        writer, reader = self.flight.do_exchange(flight.FlightDescriptor.for_command(json.dumps(command)))
        with writer:
            writer.begin(batches[0].schema)
            for batch in batches:
                writer.write_batch(batch)
            writer.done_writing()
            answers, rows = {}, []
            for chunk in reader:
                rows += chunk.data.to_pylist()
                if chunk.app_metadata is not None:
                    said = json.loads(chunk.app_metadata.to_pybytes())
                    answers[said["batch"]] = (said, rows)
                    rows = []
        assert rows == [] and sorted(answers) == list(range(len(batches)))
        return [answers[batch] for batch in sorted(answers)]

    # Decisions.

    def count(self, name: str, sql: str | None = None) -> int:
        filter_ = table_pb2.Filter(sql=sql) if sql else None
        return self.tables.CountRows(tables_pb2.CountRowsRequest(table=table(name), filter=filter_)).num_rows

    def versions(self, name: str) -> list[tables_pb2.TableVersion]:
        """Newest first."""
        return list(self.tables.ListVersions(tables_pb2.ListVersionsRequest(table=table(name))).versions)

    def describe(self, name: str) -> tables_pb2.DescribeTableResponse:
        return self.tables.DescribeTable(tables_pb2.DescribeTableRequest(table=table(name)))
