"""The workbench running in this process, its jobs in processes of their own."""

import http.client
import json
import threading
import time
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest


class Running:
    """A workbench that answers, and what a page would ask of it."""

    def __init__(self, folder):
        from rescore.app import workbench
        from rescore.app.server import application, listening, serving, token_made

        workbench.RESAMPLES = 2

        self.folder, self.token = folder, token_made()
        self.sock = listening(0)
        self.port = self.sock.getsockname()[1]
        self.guard = application(folder, self.token, self.port)
        self.server = serving(self.guard)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.sock]})
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def ask(self, method, path, body=None, headers=None, whole=None):
        """Status, headers and body; ``whole`` is a path that need not have the token."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        given = {"Host": f"127.0.0.1:{self.port}"} | (headers or {})
        link.putrequest(method, whole or f"/{self.token}/{path}", skip_host=True)
        for name, value in given.items():
            link.putheader(name, value)
        if body is not None and "Content-Length" not in given:
            link.putheader("Content-Length", str(len(body)))
        link.endheaders(body)
        answer = link.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        link.close()
        return found

    def post(self, path, **data):
        status, _, body = self.ask("POST", f"api/{path}", json.dumps(data).encode())
        return status, json.loads(body)

    def state(self):
        return json.loads(self.ask("GET", "api/state")[2])

    def load(self, name, content):
        status, _, body = self.ask("POST", "api/table", content, {"X-Name": quote(name)})
        return status, json.loads(body)

    def wait(self, ready, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.state()
            if ready(state):
                return state
            time.sleep(0.05)
        raise AssertionError(f"waited in vain: {state['busy']}, {state['errors']}")

    def close(self):
        if not self.thread.is_alive():
            return
        self.server.should_exit = True
        self.thread.join(120)
        self.sock.close()


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    bench = Running(tmp_path_factory.mktemp("session"))
    yield bench
    bench.close()


@pytest.fixture
def begun():
    """Begins a workbench in a folder; all of them end with the test."""
    pytest.importorskip("uvicorn")
    benches = []

    def begin(folder):
        benches.append(Running(folder))
        return benches[-1]

    yield begin
    for bench in benches:
        bench.close()


@pytest.fixture(scope="session")
def two_groups():
    """A chain of four variables; a tenth of the rows has noise of its own."""
    rng = np.random.default_rng(3)
    scale = np.where(np.arange(400)[:, None] < 360, [1, 0.3, 1, 0.3], [0.3, 3, 0.3, 3])
    noise = rng.normal(size=(400, 4)) * scale
    X = np.zeros((400, 4))
    for j in range(4):
        X[:, j] = noise[:, j] + (1.2 * X[:, j - 1] if j else 0)
    frame = pd.DataFrame(X, columns=["alpha", "beta", "gamma", "delta"])
    return frame.assign(batch=np.where(np.arange(400) < 360, "old", "new"))


def csv(frame):
    return frame.to_csv(index=False).encode()
