"""The server without a browser: who is answered, what is refused, and that only the last position of an open tab is worked on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra explore is not installed")
pytest.importorskip("uvicorn", reason="the extra explore is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

import oldlight as ol
from oldlight.explore import page_files
from oldlight.explore.menu import menu_of
from oldlight.explore.server import MESSAGE, application, bound, read_job
from oldlight.explore.sessions import TabWorkers

TOKEN = "t0ken-of-this-test"
HOST = "127.0.0.1:8123"
ORIGIN = {"Origin": f"http://{HOST}"}
LIVE = f"ws://{HOST}/{TOKEN}/live"
MENU = menu_of("inventory:horizon=3")


@pytest.fixture(scope="module")
def workers() -> Iterator[TabWorkers]:
    made = TabWorkers(MENU)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def client(workers: TabWorkers) -> Iterator[TestClient]:
    app = application(MENU, TOKEN, (HOST, "localhost:8123"), workers)
    with TestClient(app, base_url=f"http://{HOST}") as made:
        yield made


def ask(n: int, *parts: str, **position: Any) -> str:
    return json.dumps({"n": n, "position": position, "parts": list(parts)})


def test_the_page_and_its_files_are_served_to_who_has_the_token(client: TestClient) -> None:
    page = client.get(f"/{TOKEN}/")
    assert page.status_code == 200
    assert 'id="menu"' in page.text
    for name in page_files.KINDS:
        found = client.get(f"/{TOKEN}/{name}")
        assert found.status_code == 200
        assert found.headers["content-type"].startswith(page_files.KINDS[name])
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in found.headers
        policy = found.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "http:" not in policy
        assert "https:" not in policy
    assert "http://" not in page_files.asset("explore.html")


@pytest.mark.parametrize(
    "path",
    ["/", "/wrong/", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/", f"/{TOKEN}/menu.py", f"/{TOKEN}/..%2fmenu.py", f"/{TOKEN}/assets/main.js", "/é/"],
)  # fmt: skip
def test_nothing_else_has_an_address(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8123", "127.0.0.1", "127.0.0.1:80", "localhost:8124", ""]
)
def test_another_host_header_is_refused(client: TestClient, host: str) -> None:
    assert client.get(f"/{TOKEN}/", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_only_get_is_answered(client: TestClient, method: str) -> None:
    assert client.request(method, f"/{TOKEN}/").status_code == 405


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (f"/{TOKEN}/live", {}),
        (f"/{TOKEN}/live", {"Origin": "http://evil.example"}),
        (f"/{TOKEN}/live", {"Origin": "null"}),
        (f"/{TOKEN}/live", {"Origin": f"https://{HOST}"}),
        (f"/{TOKEN}/live", ORIGIN | {"Host": "evil.example"}),
        ("/wrong/live", ORIGIN),
    ],
)
def test_a_websocket_of_another_page_is_refused(client: TestClient, path: str, headers: dict[str, str]) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(f"ws://{HOST}{path}", headers=headers) as tab:
        tab.receive_json()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "JSON|Expecting|object"),
        ("[]", "an object with n, position and parts"),
        ("[" * 5000, "deep|Expecting value"),  # as deep as this Python may go
        ('{"n": 1, "position": {}}', "parts is None; allowed is a list of optimum"),
        ('{"n": 1, "position": {}, "parts": ["plan"]}', "allowed is a list of optimum"),
        ('{"n": 1, "position": {"delay": 1e99}, "parts": ["optimum"]}', "allowed is a whole number"),
        ('{"n": 1, "position": {"delay": NaN}, "parts": ["optimum"]}', "allowed|NaN"),
        (f'{{"n": 1, "position": {{"plant": "{"x" * MESSAGE}"}}, "parts": ["optimum"]}}', "allowed are 16,384"),
    ],
)
def test_a_message_that_is_none_is_answered_with_what_is_allowed(text: str, says: str) -> None:
    _, job, why = read_job(MENU, text)
    assert job is None
    assert re.search(says, why), why


def test_a_taken_port_is_named() -> None:
    with bound(0) as taken:
        taken.listen()
        with pytest.raises(OSError, match=r"cannot be used .*--port, or 0"):
            bound(taken.getsockname()[1])


def test_a_tab_is_answered_and_closing_it_ends_its_process(client: TestClient, workers: TabWorkers) -> None:
    best = ol.solve(ol.ImpairedMDP(ol.instances.inventory(horizon=3), "constant:1+loss:0.1")).value
    with client.websocket_connect(LIVE, headers=ORIGIN) as tab:
        tab.send_text(ask(1, "optimum", delay=99))
        refused = tab.receive_json()
        assert (refused["n"], refused["part"]) == (1, "refused")
        assert "allowed is a whole number from 0 to 8 steps" in refused["text"]
        for n in range(2, 40):  # a slider that is being moved: only the last position is answered
            tab.send_text(ask(n, "optimum", delay=n % 3, loss=n))
        tab.send_text(ask(40, "optimum", delay=1, loss=10))
        answers = []
        while not answers or answers[-1]["part"] != "done":
            answers.append(tab.receive_json())
        assert answers[-1]["n"] == 40
        final = [part for part in answers if part["n"] == 40 and part["part"] == "optimum"][-1]
        assert final["value"] == pytest.approx(best, abs=1e-9)
        assert len({part["n"] for part in answers}) < 20
        with client.websocket_connect(LIVE, headers=ORIGIN) as other:  # another tab has its own numbers
            other.send_text(ask(1, "optimum", delay=0, loss=0))
            tab.send_text(ask(41, "optimum", delay=2, loss=0))
            one, two = other.receive_json(), tab.receive_json()
            while one["part"] != "optimum":
                one = other.receive_json()
            while two["part"] != "optimum":
                two = tab.receive_json()
            assert (one["n"], two["n"]) == (1, 41)
            assert one["value"] > two["value"]
            assert len(workers._all) >= 2
    until = time.monotonic() + 20
    while len(workers._all) > 1 and time.monotonic() < until:  # the one that waits for the next tab stays
        time.sleep(0.05)
    assert len(workers._all) <= 1


def test_ctrl_c_ends_the_server_and_every_process_of_it() -> None:
    command = [sys.executable, "-m", "oldlight", "explore", "inventory:horizon=3", "--no-browser"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    said = server.stderr.readline()
    assert "http://127.0.0.1:" in said
    server.send_signal(signal.SIGINT)
    _, rest = server.communicate(timeout=30)
    assert server.returncode == 0
    assert "Traceback" not in rest
    assert rest.splitlines()[-1] == "Ended."
