"""The workbench as a server: who is let in, what harms nobody, what survives."""

import gzip
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rescore.app import server
from rescore.app.jobs import _cut

pytest.importorskip("uvicorn")
FEW = 2  # resamples, see conftest


def csv(frame):
    return frame.to_csv(index=False).encode()


PATHS = [("GET", ""), ("GET", "api/state"), ("GET", "static/app.js"), ("GET", "api/events"),
         ("POST", "api/step"), ("GET", "api/export/fit.py")]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_without_the_token_nothing_is_told(running, method, path):
    for said in ("", "x" * 32, running.token[:-1], running.token + "x"):
        status, headers, body = running.ask(method, "", b"{}", whole=f"/{said}/{path}")
        assert status == 403
        assert "content-security-policy" in headers
        assert running.token.encode() not in body


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_other_hosts_and_pages_from_elsewhere_are_refused(running, headers):
    for method, path in (("GET", "api/state"), ("POST", "api/fit")):
        assert running.ask(method, path, b"{}", headers)[0] == 403


def test_the_page_itself_is_let_in(running):
    own = {"Origin": f"http://127.0.0.1:{running.port}", "Sec-Fetch-Site": "same-origin"}
    assert running.ask("GET", "api/state", headers=own)[0] == 200
    assert running.ask("GET", "api/state", headers={"Host": f"localhost:{running.port}"})[0] == 200


def test_it_listens_on_this_machine_alone(running):
    assert running.sock.getsockname()[0] == "127.0.0.1"
    with pytest.raises(ValueError, match="another one"):
        server.listening(running.port)


def test_every_answer_has_the_policy_and_none_a_permission_for_others(running):
    for method, path in PATHS:
        if path == "api/events":
            continue  # never ends
        _, headers, _ = running.ask(method, path, b"{}")
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not any(name.lower().startswith("access-control") for name in headers)
        assert "server" not in headers


@pytest.mark.parametrize(
    "name",
    ["../recipe.py", "..%2fserver.py", "%2e%2e/jobs.py", "/etc/passwd", "vendor/LICENSE", "x"],
)
def test_only_the_pages_own_files_are_served(running, name):
    assert running.ask("GET", f"static/{name}")[0] == 404


def test_files_of_the_page_name_nobody_else(running):
    page = running.ask("GET", "")[2].decode()
    for word in ("http://", "https://", "<script>", "<style>", " style=", "onclick"):
        assert word not in page


def test_too_much_is_refused_before_and_while_it_comes(running, monkeypatch):
    announced = {"X-Name": "a.csv", "Content-Length": str(2**40)}
    status, _, body = running.ask("POST", "api/table", b"", announced)
    assert (status, b"more than" in body) == (413, True)
    monkeypatch.setattr(server, "MOST_BYTES", 1000)
    with socket.create_connection(("127.0.0.1", running.port)) as link:
        head = f"POST /{running.token}/api/table HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n"
        link.sendall((head + "X-Name: a.csv\r\nTransfer-Encoding: chunked\r\n\r\n").encode())
        for _ in range(3):
            link.sendall(b"200\r\n" + b"1" * 512 + b"\r\n")
        assert b" 413 " in link.recv(1000)
    monkeypatch.setattr(server, "MOST_JSON", 1000)
    assert running.ask("POST", "api/step", b" " * 2000)[0] == 413
    assert not [path for path in running.folder.iterdir() if path.name.startswith(".coming")]


@pytest.mark.parametrize(
    "body", [b"[]", b"{", b'{"step": 3}', b"{}", b"[" * 100_000, b'{"step": {}}']
)
def test_what_is_no_step_is_a_sentence(running, body):
    status, _, answer = running.ask("POST", "api/step", body)
    assert status == 400
    assert len(json.loads(answer)["error"]) > 5


@pytest.mark.parametrize("name", ["a.exe", "", "../../../a", "x.csv\x00"])
def test_a_file_of_another_kind_is_refused_by_its_name(running, name):
    assert running.load(name, b"a,b\n1,2\n")[0] == 400


def test_nothing_is_written_outside_the_sessions_folder(running, two_groups):
    before = {path.name for path in running.folder.parent.iterdir()}
    status, state = running.load("../../../../tmp/evil/../x.csv", csv(two_groups))
    assert status == 200
    assert state["source"] == "../../../../tmp/evil/../x.csv"
    assert (running.folder / "table.csv").read_bytes() == csv(two_groups)
    assert {path.name for path in running.folder.parent.iterdir()} == before
    text = running.ask("GET", "api/export/command.txt")[2].decode()
    assert text == "rescore fit x.csv -o run\n"


def test_a_million_columns_are_a_sentence(running):
    header = ",".join(f"c{k}" for k in range(1_000_000)).encode()
    running.load("wide.csv", header + b"\n" + b"0," * 999_999 + b"0\n")
    state = running.wait(lambda now: "columns" in now["errors"])
    assert "1,000,000 columns" in state["errors"]["columns"]


def test_a_bomb_is_a_sentence(running):
    zeros = gzip.compress(b"0" * 2**20, 1)
    running.load("bomb.csv.gz", zeros * 400)
    state = running.wait(lambda now: "columns" in now["errors"])
    assert "would unpack to more than" in state["errors"]["columns"]


def test_names_that_are_scripts_or_formulas_stay_text(running, two_groups):
    names = ["<script>alert(1)</script>", "=cmd()", '"><img src=x onerror=alert(1)>', "a,b"]
    hostile = two_groups.drop(columns="batch").set_axis(names, axis=1)
    running.load("hostile.csv", csv(hostile))
    running.post("fit")
    state = running.wait(lambda now: now["fit"] and not now["fit"]["quick"])
    assert [node["name"] for node in state["fit"]["graph"]["nodes"]] == names
    status, state = running.post("step", step={"do": "forbid", "edges": [names[:2]]})
    assert status == 200
    assert state["recipe"]["forbidden"] == [names[:2]]
    _, headers, body = running.ask("GET", "api/export/report.html")
    assert "attachment" in headers["content-disposition"]
    assert b"<script>alert(1)" not in body


@pytest.fixture
def halted(running, two_groups):
    """The bench of a workbench in the middle of a fit without an end: its process stands still."""
    bench = running.guard.inner.state.pages.bench.bench
    running.load("t.csv", csv(two_groups.drop(columns="batch")))
    running.post("fit")
    running.wait(lambda now: now["fit"] and not now["fit"]["quick"] and not now["busy"])
    os.kill(bench.pid, signal.SIGSTOP)
    running.post("step", step={"do": "forbid", "edges": [["alpha", "beta"]]})
    running.wait(lambda now: "fit" in now["busy"])
    return bench


def test_a_fit_that_is_killed_is_told_and_the_next_one_works(running, halted):
    os.kill(halted.pid, signal.SIGKILL)
    state = running.wait(lambda now: "fit" in now["errors"])
    assert re.search("ended (by SIGKILL|unexpectedly); a new one has", state["errors"]["fit"])
    running.post("fit")
    state = running.wait(lambda now: now["fit"] and not now["fit"]["quick"])
    assert "fit" not in state["errors"]


def test_an_error_calls_the_file_as_its_owner_does(running, two_groups):
    running.load("my study.csv", csv(two_groups.assign(id="a b")))
    running.post("fit")
    state = running.wait(lambda now: "fit" in now["errors"])
    assert state["errors"]["fit"].startswith("'my study.csv': Line 2")


def test_processes_of_the_workbench_end_with_it(tmp_path):
    """Also where nobody closes what they read from, as in the middle of a job."""
    start = (
        "import os, subprocess, sys; words = [*sys.argv[1:], str(os.getpid()), str(0)];"
        "print(subprocess.Popen(words, stdout=-3).pid, flush=True)"
    )
    words = [sys.executable, "-m", "rescore.app.jobs", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-c", start, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        worker = int(parent.stdout.readline())
        parent.wait()  # its own process is gone; the worker's stdin is still open here
        until = time.monotonic() + 60
        while Path(f"/proc/{worker}/stat").exists() and time.monotonic() < until:
            if Path(f"/proc/{worker}/stat").read_text().split(") ")[1][0] == "Z":
                break
            time.sleep(0.1)
        else:
            assert not Path(f"/proc/{worker}").exists()


def test_a_fit_can_be_stopped_and_the_page_answers_meanwhile(running, halted):
    pid = halted.pid
    _, state = running.post("step", step={"do": "forbid", "edges": [["beta", "gamma"]]})
    assert state["fit"]["quick"]
    _, state = running.post("cancel")
    assert "fit" not in state["busy"]
    running.wait(lambda now: halted.pid != pid)
    running.post("fit")
    running.wait(lambda now: now["fit"] and not now["fit"]["quick"])


def test_refits_are_quick_then_whole_and_undoing_is_at_once(running, two_groups):
    running.load("t.csv", csv(two_groups.drop(columns="batch")))
    _, state = running.post("fit")
    assert state["fit"]["quick"]
    assert not state["fit"]["kept"]
    state = running.wait(lambda now: now["fit"] and not now["fit"]["quick"])
    assert state["fit"]["weighting"]["groups"] == 2
    first = state["fit_id"]
    _, state = running.post("step", step={"do": "forbid", "edges": [["alpha", "beta"]]})
    assert state["fit"]["kept"]
    assert ["alpha", "beta"] not in edges_of(state)
    assert state["fit"]["weighting"]["groups"] == 2
    state = running.wait(lambda now: now["costs"] and not now["fit"]["quick"])
    (cost,) = state["costs"]
    assert cost["cost"] > 1  # the edge can be turned round at little cost
    _, state = running.post("go", at=0)
    assert state["fit_id"] == first
    assert not state["stale"]
    state = running.wait(lambda now: now["stability"] and now["stability"]["done"] == FEW)
    assert {line["stability"] for line in state["stability"]["edges"]} <= {
        k / FEW for k in range(FEW + 1)
    }


def edges_of(state):
    names = {node["id"]: node["name"] for node in state["fit"]["graph"]["nodes"]}
    return [[names[e["source"]], names[e["target"]]] for e in state["fit"]["graph"]["edges"]]


def test_rows_that_differ_are_told_apart_and_left_out(running, two_groups):
    running.load("t.csv", csv(two_groups))
    running.post("step", step={"do": "groups", "column": "batch"})
    running.post("fit")
    state = running.wait(lambda now: now["fit"] and not now["fit"]["quick"])
    small = min(range(2), key=lambda k: state["fit"]["weighting"]["share_before"][k])
    _, found = running.post("rows", choice={"group": small})
    truly_new = {row["row"] for row in found["listed"] if row["row"] >= 360}
    assert len(truly_new) > 0.8 * found["count"]
    wide = {bar["name"]: bar["noise"] for bar in found["bars"]}
    assert wide["beta"] > 3
    assert wide["alpha"] < 0.7
    _, labelled = running.post("rows", choice={"label": "new"})
    assert labelled["rows"] == "360-399"
    _, state = running.post(
        "step", step={"do": "exclude", "rows": "360-399", "why": "the new batch"}
    )
    assert state["fit"]["rows"]["used"] == 360
    state = running.wait(lambda now: not now["fit"]["quick"] and not now["stale"])
    assert state["history"][-1]["told"] == "Leave out 40 rows: the new batch"
    assert "--exclude 360-399" in running.ask("GET", "api/export/command.txt")[2].decode()


def test_rows_that_were_set_aside_are_rows_all_the_same():
    kept = {"weight": np.array([0.0, 0.5, 0.5, 0.0]), "loss": np.array([9.0, 1.0, 1.0, np.nan])}
    used = np.array([True, True, True, False])
    np.testing.assert_array_equal(_cut(kept, used, 2), [0.0, 0.5, 0.5])
    assert _cut(kept, ~used, 2) is None  # weighed by nobody


def test_a_second_tab_sees_the_same_and_a_closed_one_leaves(running, two_groups):
    pages = running.guard.inner.state.pages
    running.load("t.csv", csv(two_groups))
    with socket.create_connection(("127.0.0.1", running.port)) as tab:
        tab.sendall(f"GET /{running.token}/api/events HTTP/1.1\r\n"
                    f"Host: 127.0.0.1:{running.port}\r\n\r\n".encode())  # fmt: skip
        assert b"200 OK" in tab.recv(2000)
        running.post("step", step={"do": "settings", "drop": ["delta"]})
        heard = b""
        while str(running.state()["version"]).encode() not in heard:
            heard += tab.recv(2000)
        assert len(pages.bench._listeners) == 1
    running.post("step", step={"do": "settings", "drop": ["gamma"]})
    running.wait(lambda now: not pages.bench._listeners)
    assert running.state()["recipe"]["drop"] == ["delta", "gamma"]


def test_findings_come_with_their_repairs(running, two_groups):
    broken = two_groups.assign(id=[f"case {k}" for k in range(400)])
    broken.loc[::9, "beta"] = None
    running.load("broken.csv", csv(broken))
    state = running.wait(lambda now: now["findings"])
    assert not state["findings"]["ok"]
    fixes = state["findings"]["settings"]
    assert fixes == {"drop": ["id"], "categories": "exogenous", "missing": "em"}
    running.post("step", step={"do": "settings", **fixes})
    state = running.wait(lambda now: now["findings"])
    assert state["findings"]["ok"]
    kinds = {one["name"]: (one["kind"], one["missing"]) for one in state["columns"]["columns"]}
    assert kinds["batch"] == ("category", 0)
    assert kinds["beta"] == ("numbers", 45)
    assert kinds["id"][0] == "labels of single rows"


def test_learners_are_told_in_words(running):
    found = json.loads(running.ask("GET", "api/learners")[2])
    linear = next(one for one in found if one["name"] == "Linear")
    assert "any units" in linear["told"]
    share = next(one for one in linear["options"] if one["name"] == "least_share")
    assert share["default"] == 0.005
    assert "share of its effect's noise variance" in share["told"]


def test_learners_stand_side_by_side(running, two_groups):
    running.load("t.csv", csv(two_groups.drop(columns="batch")))
    running.post("fit")
    learners = [{"name": "Linear"}, {"name": "GES"}, {"name": "CDNOD"}]
    running.wait(lambda now: now["fit"] and not now["fit"]["quick"])
    running.post("compare", learners=learners)
    state = running.wait(lambda now: now["compared"] and len(now["compared"]) == 3)
    plain, ges, told = state["compared"]
    assert plain["edges"]
    assert ges["edges"]
    assert "needs the group" in told["error"]


def test_pictures_and_the_archive_are_what_they_are_called(running, two_groups):
    running.load("a table.csv", csv(two_groups.drop(columns="batch")))
    running.post("step", step={"do": "forbid", "edges": [["alpha", "delta"]]})
    running.post("step", step={"do": "tiers", "tiers": [["alpha"], ["delta"]]})
    running.post("fit")
    running.wait(lambda now: now["fit"] and not now["fit"]["quick"])
    png = running.ask("GET", "api/export/graph.png")[2]
    assert png.startswith(b"\x89PNG")
    svg = running.ask("GET", "api/export/graph.svg")[2]
    assert b"<svg" in svg[:500]
    assert all(name in svg.decode() for name in ("alpha", "beta", "gamma", "delta"))
    _, headers, content = running.ask("GET", "api/export/everything.zip")
    assert headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        assert {"a_table.csv", "fit.py", "command.txt", "knowledge.json", "left_out.txt",
                "run/report.html", "run/graph.png", "run/adjacency.csv"} <= names  # fmt: skip
        assert archive.read("a_table.csv") == csv(two_groups.drop(columns="batch"))
        assert archive.read("fit.py") == running.ask("GET", "api/export/fit.py")[2]
        assert archive.read("run/graph.png")[:4] == b"\x89PNG"
    tetrad = running.ask("GET", "api/export/knowledge.txt")[2].decode()
    assert re.search(r"forbiddirect\s+alpha delta", tetrad)
    assert re.search(r"addtemporal\s+1 alpha\s+2 delta", tetrad)


def test_a_session_in_a_folder_comes_back_with_its_fits(begun, two_groups, tmp_path):
    first = begun(tmp_path)
    first.load("t.csv", csv(two_groups.drop(columns="batch")))
    first.post("fit")
    first.wait(lambda now: now["fit"] and not now["fit"]["quick"])
    first.post("step", step={"do": "forbid", "edges": [["alpha", "beta"]]})
    left = first.wait(lambda now: not now["fit"]["quick"] and not now["stale"])
    first.close()
    again = begun(tmp_path)
    state = again.state()
    assert state["asked"]
    assert state["fit"] == left["fit"]
    assert state["fit_id"] == left["fit_id"]
    assert state["recipe"]["forbidden"] == [["alpha", "beta"]]
    _, state = again.post("go", at=0)
    assert ["alpha", "beta"] in edges_of(state)
    assert not state["fit"]["quick"]
    _, found = again.post("rows", choice={"heaviest": 0.05})
    assert found["count"] == 20
