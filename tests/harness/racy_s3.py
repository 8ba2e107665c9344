"""An S3 server that keeps its word when one writer comes after the other, and loses it in a race.

It stands before a real server and hands everything on, but puts that create (If-None-Match): it looks whether the key
is there, takes the body, and then writes. Servers that people use do the same.
"""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .s3 import S3Server

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class RacyS3:
    """In front of `server`, as long as the block lasts."""

    def __init__(self, server: S3Server):
        self.server = server

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.hand_on()

            do_HEAD = do_POST = do_DELETE = do_GET

            def do_PUT(self) -> None:
                if self.headers.get("If-None-Match") == "*":
                    self.look_then_write()
                else:
                    self.hand_on()

            def body(self) -> bytes:
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def look_then_write(self) -> None:
                path = self.path.partition("?")[0].lstrip("/")
                store = server.client()
                found = store.get_file_info(path).is_file
                body = self.body()
                if not found:
                    with store.open_output_stream(path) as out:
                        out.write(body)
                self.send_response(412 if found else 200)
                self.send_header("ETag", '"0"')
                self.send_header("Content-Length", "0")
                self.end_headers()

            def hand_on(self) -> None:
                body = self.body()
                upstream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
                # With the name that the client signed.
                upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    upstream.putheader(name, value)
                upstream.endheaders(body)
                answer = upstream.getresponse()
                content = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in HOP_BY_HOP:
                        self.send_header(name, value)
                length = answer.headers["Content-Length"] if self.command == "HEAD" else len(content)
                self.send_header("Content-Length", str(length or 0))
                self.end_headers()
                self.wfile.write(content)
                upstream.close()

            def log_message(self, *_) -> None:
                pass

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.listener = Listener(("127.0.0.1", 0), Handler)

    def options(self) -> dict[str, str]:
        """Storage options that lead here."""
        return {**self.server.options(), "aws_endpoint": f"http://127.0.0.1:{self.listener.server_port}"}

    def __enter__(self) -> "RacyS3":
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.listener.shutdown()
        self.listener.server_close()
