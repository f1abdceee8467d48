"""A web server on 127.0.0.1 that misbehaves as told."""

import socket
import struct
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

CONTENT = bytes(range(256)) * 1000


class Server(ThreadingHTTPServer):
    """`script` says what to do with each request in turn, its last entry with all that follow:

    good, wrong (another content), unsized (no length), short (ends early), reset (ends early, by force),
    drip (a few bytes, then nothing), or an HTTP status. `requests` lists the paths asked for.
    """

    daemon_threads = True

    def __init__(self, script, contents):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.contents, self.requests = list(script), contents, []

    def url(self, name="file"):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server, name = self.server, self.path.lstrip("/")
        server.requests.append(name)
        what = server.script.pop(0) if len(server.script) > 1 else server.script[0]
        content = server.contents.get(name, CONTENT)
        if isinstance(what, int):
            return self.send_error(what)
        self.send_response(200)
        if what != "unsized":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if what == "wrong":
            content = content[::-1]
        if what in ("short", "reset", "drip"):
            content = content[:len(content) // 2]
        self.wfile.write(content)
        if what == "reset":       # closing with unsent lingering time 0 sends RST instead of FIN
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if what == "drip":
            self.connection.settimeout(5)
            self.connection.recv(1)                 # until the other side gives up
        return self.connection.shutdown(socket.SHUT_RDWR) if what in ("short", "unsized") else None

    def log_message(self, *_):
        pass


@contextmanager
def serving(*script, **contents):
    """The Server, running; contents: what to send under other names than the default's."""
    server = Server(script, contents)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
