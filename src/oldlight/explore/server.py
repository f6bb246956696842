"""The server of the explorer: on this machine, for whoever has the address.

    http://127.0.0.1:PORT/TOKEN/            the page, its style and scripts, plotly's script from the installed package
    ws://127.0.0.1:PORT/TOKEN/live          jobs to the server, parts of answers to the page

**Who may ask.** It listens on the loopback address alone. Every request must name this machine and this port in its Host header, so that a page from
elsewhere whose name was made to lead here (DNS rebinding) is refused; a WebSocket must come from this page (Origin). The token, 32 random bytes in the
address, keeps out other users of the machine; it is compared in constant time. Only GET and the WebSocket exist, nothing allows other origins,
nothing that the page sends is a path, and a message has at most `MESSAGE` bytes.

**What the page may load** is said in its own security policy: from here, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from oldlight.explore import page_files
from oldlight.explore.menu import Menu
from oldlight.explore.positions import position_of
from oldlight.explore.sessions import MOST_TABS, Session, TabWorkers
from oldlight.files import json_of

MESSAGE = 16_384  # bytes
PARTS = ("optimum", "prices", "curve", "policy", "episode", "frontier", "need")
NAMES = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'none'; "
    "connect-src 'self' ws://127.0.0.1:* ws://localhost:*; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def needs_explore() -> None:
    """Refuse, with the way out, where the extra is not installed."""
    try:
        import plotly  # type: ignore[import-untyped]  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
    except ImportError as missing:
        raise ImportError(f"the explorer needs {missing.name}: pip install 'oldlight[explore]'") from missing


def application(menu: Menu, token: str, hosts: tuple[str, ...], workers: TabWorkers | None = None) -> Any:
    """The application for these Host headers; workers: those of its tabs, made here if None."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket

    workers = workers or TabWorkers(menu)

    def known(given: str) -> bool:
        return secrets.compare_digest(given.encode(), token.encode())

    async def file(request: Request) -> Response:
        name = request.path_params.get("name") or "explore.html"
        if not known(request.path_params["token"]) or name not in page_files.KINDS:
            return PlainTextResponse("Not found: the address is the one that oldlight explore printed.\n", 404)
        body = page_files.served(name, menu)
        return Response(body, media_type=page_files.KINDS[name], headers={"Content-Security-Policy": POLICY})

    async def live(websocket: WebSocket) -> None:
        if not known(websocket.path_params["token"]):
            await websocket.close(4404)
            return
        await websocket.accept()
        if sum(tabs) >= MOST_TABS:
            await websocket.send_text(json.dumps({"n": 0, "part": "full", "text": f"{MOST_TABS} tabs are open already: close one and load this page again."}))  # fmt: skip
            await websocket.close(4429)
            return
        tabs.append(1)
        try:
            await talk(websocket, menu, workers)
        finally:
            tabs.pop()

    tabs: list[int] = []

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        await asyncio.to_thread(workers.prepare)
        try:
            yield
        finally:
            await asyncio.to_thread(workers.close)

    routes = [
        Route("/{token}/", file, methods=["GET"]),
        Route("/{token}/{name}", file, methods=["GET"]),
        WebSocketRoute("/{token}/live", live),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), hosts)


async def talk(websocket: Any, menu: Menu, workers: TabWorkers) -> None:
    """One tab, from its first message to its last."""
    from starlette.websockets import WebSocketDisconnect

    async def send(message: dict[str, Any]) -> None:
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it is just being closed
            await websocket.send_text(json.dumps(message, allow_nan=False))

    session = Session(workers, send)
    running = asyncio.create_task(session.run())
    try:
        while True:
            text = await websocket.receive_text()
            n, job, refused = read_job(menu, text)
            if job is None:
                await send({"n": n, "part": "refused", "text": refused})
            else:
                session.ask(n, job)
    except WebSocketDisconnect:
        pass
    finally:
        session.close()
        running.cancel()


def read_job(menu: Menu, text: str) -> tuple[int, dict[str, Any] | None, str]:
    """The number of a message, its job, or what is wrong with it in a sentence."""
    n = 0
    try:
        if len(text) > MESSAGE:
            raise ValueError(f"a message has {len(text):,} characters; allowed are {MESSAGE:,}")
        given = json_of(text)
        if not isinstance(given, dict) or not isinstance(given.get("position"), dict):
            raise ValueError("a message is an object with n, position and parts")
        n = given["n"] if isinstance(given.get("n"), int) else 0
        parts = given.get("parts")
        if not isinstance(parts, list) or not parts or any(part not in PARTS for part in parts):
            raise ValueError(f"parts is {str(parts)[:60]}; allowed is a list of {', '.join(PARTS)}")
        position_of(menu, given["position"])
        job = {"position": given["position"], "parts": parts, "axis": str(given.get("axis", "delay"))[:20], "seed": given.get("seed", 1), "target": given.get("target", 80)}  # fmt: skip
        return n, job, ""
    except ValueError as wrong:
        return n, None, str(wrong)


class Guard:
    """Refuses what does not name this machine and port, and WebSockets of other pages; adds headers to every answer."""

    def __init__(self, app: Any, hosts: tuple[str, ...]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """ASGI."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        host = [value for name, value in headers if name == b"host"]
        origin = [value for name, value in headers if name == b"origin"]
        allowed = len(host) == 1 and host[0].lower() in self.hosts
        if scope["type"] == "websocket":
            allowed = allowed and len(origin) == 1 and origin[0].lower() in {f"http://{name}" for name in self.hosts}
            if not allowed:
                await send({"type": "websocket.close", "code": 4403})
                return
        if not allowed or (scope["type"] == "http" and scope["method"] != "GET"):
            text = "This address answers to this machine and to GET alone.\n"
            await send({"type": "http.response.start", "status": 403 if not allowed else 405,
                        "headers": [(b"content-type", b"text/plain; charset=utf-8")]})  # fmt: skip
            await send({"type": "http.response.body", "body": text.encode()})
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = message | {"headers": [*message.get("headers", []), *more]}
            await send(message)

        await self.app(scope, receive, with_headers)


def bound(port: int) -> socket.socket:
    """A socket on the loopback address; port 0: any that is free."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
    except OSError as taken:
        found.close()
        raise OSError(taken.errno, f"port {port} cannot be used ({taken.strerror}); give another by --port, or 0 for any that is free") from None  # fmt: skip
    return found


def serve_menu(menu: Menu, port: int = 0, opened: Callable[[str], None] | None = None) -> None:
    """Serve until Ctrl-C; opened(address) is called when the page can be loaded."""
    needs_explore()
    import uvicorn

    token = secrets.token_urlsafe(32)
    listening = bound(port)
    number = listening.getsockname()[1]
    app = application(menu, token, tuple(f"{name}:{number}" for name in NAMES))

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started and opened is not None:
                opened(f"http://127.0.0.1:{number}/{token}/")

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="auto", ws_max_size=MESSAGE, timeout_graceful_shutdown=1,
        server_header=False, lifespan="on",
    )  # fmt: skip
    with listening:
        Server(config).run(sockets=[listening])
