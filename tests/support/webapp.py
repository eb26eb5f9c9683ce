"""A small web service on this machine, as an agent's tools use one; it counts what it is asked."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class WebApp:
    """Answers every GET and POST with a number that rises."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        app = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                app.asked.append(f"{self.command} {self.path}")
                body = f"answer {len(app.asked)}".encode()
                self.send_response(200)
                self.send_header("content-type", "text/plain")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = answer  # noqa: N815  # the base class says so

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
