"""`fetch` against a local server that drops connections, lies and is busy."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.fetch import RemoteFile, RemoteSource, fetch, known_sources
from corpora.licences import TABLE
from corpora.readers import READERS

CONTENT = {"a.txt": b"The pier was mended. " * 9_000, "part/b.txt": b"It rained.\n"}
HALF = len(CONTENT["a.txt"]) // 2


class Server(ThreadingHTTPServer):
    """Serves `CONTENT`; `faults` are taken one by one: a status, or `drop` or `ignore range`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: list[int | str] = []
        self.content = dict(CONTENT)
        self.asked: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{{revision}}/{{path}}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path = self.path.removeprefix("/r1/")
        range = self.headers.get("Range", "")
        self.server.asked.append((path, range))
        fault = self.server.faults.pop(0) if self.server.faults else ""
        body = self.server.content.get(path)
        if isinstance(fault, int) or body is None:
            self.send_error(fault or 404)
            return
        start = int(range[6:-1]) if range and fault != "ignore range" else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        rest = body[start:]
        self.wfile.write(rest[: len(rest) // 2] if fault == "drop" else rest)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def sources(url: str, *files: RemoteFile) -> dict[str, RemoteSource]:
    known = files or tuple(
        RemoteFile(path, hashlib.sha256(body).hexdigest(), len(body))
        for path, body in CONTENT.items()
    )
    return {"pier": RemoteSource("pier", "About piers", "text", "CC0-1.0", "r1", url, known)}


def bring(server: Server, folder: Path, attempts: int = 3) -> Path:
    return fetch("pier", folder, sources=sources(server.url), attempts=attempts, wait=0.01)


def check(folder: Path) -> None:
    assert folder.name == "pier"
    for path, body in CONTENT.items():
        assert (folder / path).read_bytes() == body
    assert not list(folder.rglob("*.part"))


def test_a_source_is_brought_once(server: Server, tmp_path: Path) -> None:
    check(bring(server, tmp_path))
    about = json.loads((tmp_path / "pier" / "source.json").read_text())
    assert (about["revision"], about["licence"], about["kind"]) == ("r1", "CC0-1.0", "text")
    asked = len(server.asked)
    check(bring(server, tmp_path))
    assert len(server.asked) == asked == len(CONTENT)


def test_a_dropped_connection_is_resumed(server: Server, tmp_path: Path) -> None:
    server.faults = ["drop", "drop"]
    check(bring(server, tmp_path))
    ranges = [int(range[6:-1]) for path, range in server.asked if path == "a.txt" and range]
    first, second = ranges
    assert HALF - 8192 < first <= HALF < second


def test_a_later_run_goes_on_where_an_earlier_one_stopped(server: Server, tmp_path: Path) -> None:
    server.faults = ["drop"]
    with pytest.raises(InputError, match="cannot fetch"):
        bring(server, tmp_path, attempts=1)
    assert not (tmp_path / "pier" / "a.txt").exists()
    check(bring(server, tmp_path))
    assert HALF - 8192 < int(server.asked[1][1][6:-1]) <= HALF


def test_a_server_that_knows_no_ranges_begins_anew(server: Server, tmp_path: Path) -> None:
    server.faults = ["drop", "ignore range"]
    check(bring(server, tmp_path))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(status: int, server: Server, tmp_path: Path) -> None:
    server.faults = [status, status]
    check(bring(server, tmp_path))
    assert len(server.asked) == len(CONTENT) + 2


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_final(status: int, server: Server, tmp_path: Path) -> None:
    server.faults = [status]
    with pytest.raises(InputError, match=f"answers {status} for http"):
        bring(server, tmp_path)
    assert len(server.asked) == 1


def test_other_bytes_are_refused_and_removed(server: Server, tmp_path: Path) -> None:
    server.content["a.txt"] = CONTENT["a.txt"].replace(b"mended", b"melted")
    with pytest.raises(InputError, match=r"does not have the expected sha256 .* \(a\.txt\)"):
        bring(server, tmp_path)
    assert not [path for path in (tmp_path / "pier").rglob("*") if path.is_file()]
    server.content = dict(CONTENT)
    check(bring(server, tmp_path))


def test_a_file_without_end_is_refused(server: Server, tmp_path: Path) -> None:
    server.content["a.txt"] += b"x" * 500_000
    with pytest.raises(InputError, match="does not have the expected sha256 and 189,000 bytes"):
        bring(server, tmp_path)
    assert not list((tmp_path / "pier").glob("*a.txt*"))


def test_a_file_that_was_spoilt_on_disk_is_brought_again(server: Server, tmp_path: Path) -> None:
    folder = bring(server, tmp_path)
    (folder / "a.txt").write_text("spoilt")
    check(bring(server, tmp_path))


def test_without_network_the_error_says_so(server: Server, tmp_path: Path) -> None:
    url = server.url
    server.server_close()
    with pytest.raises(InputError, match=r"cannot fetch .*ConnectionError(.|\n)*check the network"):
        fetch("pier", tmp_path, sources=sources(url), attempts=2, wait=0.01)


def test_a_folder_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "pier").write_text("in the way")
    with pytest.raises(DiscorporaError):
        bring(server, tmp_path)


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a\\..\\x"])
def test_a_path_out_of_the_folder_is_refused(path: str, server: Server, tmp_path: Path) -> None:
    wild = sources(server.url, RemoteFile(path, "0" * 64, 1))
    with pytest.raises(ConfigError, match="leads out of its folder"):
        fetch("pier", tmp_path / "in", sources=wild)
    assert not server.asked


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no source 'discoval'(.|\n)*'discoeval'"):
        fetch("discoval", tmp_path)


def test_the_list_is_pinned_and_whole() -> None:
    for name, source in known_sources().items():
        assert source.name == name and source.summary and source.files
        assert source.kind in READERS
        assert source.licence in {*TABLE, "other"}
        assert re.fullmatch(r"[0-9a-f]{40}", source.revision)
        assert source.address(source.files[0]).startswith("https://")
        assert source.revision in source.address(source.files[0])
        for file in source.files:
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256) and file.size > 0


def test_the_real_files_are_those_of_the_list(discorpora_data: Path) -> None:
    folders = {"ewt": "treebank/en_ewt", "irc": "irc", "discoeval": "discoeval", "gdtb": "gdtb"}
    upstream = (("rst/gdtb/pdtb/", ""), ("rst/rstweb/", "rst/"))
    for name, source in known_sources().items():
        for file in source.files:
            path = file.path
            for theirs, ours in upstream if name == "gdtb" else ():
                path = path.replace(theirs, ours)
            data = (discorpora_data / folders[name] / path).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file.size, file.sha256)
