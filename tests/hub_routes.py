"""What the small Hub of `tests.hub_server` answers, route by route."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from tests.hub_state import LARGE, Blob, Refusal, Reply

if TYPE_CHECKING:
    from tests.hub_server import Handler, HubServer

TIME = "2026-01-01T00:00:00.000Z"
# Those of the Hub's list of licence names that a dataset here could carry.
LICENCES = {
    *("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "pddl", "other", "unknown"),
    *("cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0"),
    *("cc-by-nc-4.0", "cc-by-nc-sa-4.0", "odc-by", "odbl", "gfdl"),
}


def whoami(request: Handler) -> Reply:
    user = request.user()
    if user is None:
        raise Refusal(401, "Invalid username or password.")
    return Reply(user)


def create_repo(request: Handler) -> Reply:
    asked = request.json()
    kind = asked.get("type", "model")
    namespace = asked.get("organization") or (request.user() or {}).get("name", "")
    request.require_write(namespace)
    id = f"{namespace}/{asked['name']}"
    url = f"{request.hub.url}/{'datasets/' if kind == 'dataset' else ''}{id}"
    if (kind, id) in request.hub.repositories:
        return Reply({"error": "You already created this repo", "url": url}, 409)
    private = asked.get("visibility") == "private" or bool(asked.get("private"))
    request.hub.make(id, kind, private=private)
    return Reply({"url": url, "name": id, "id": id})


def validate_yaml(request: Handler) -> Reply:
    """As the Hub: the metadata must be YAML and name a licence that it knows."""
    block = re.match(r"---\r?\n(.*?)\r?\n---", request.json()["content"], re.DOTALL)
    try:
        data = yaml.safe_load(block.group(1)) if block else {}
    except yaml.YAMLError as error:
        return Reply({"errors": [{"message": str(error)}], "warnings": []}, 400)
    licence = (data or {}).get("license")
    if licence is not None and licence not in LICENCES:
        return Reply({"errors": [{"message": f'"license" {licence!r} is not known'}]}, 400)
    return Reply({"errors": [], "warnings": []})


def info(request: Handler, kind: str, id: str, revision: str = "") -> Reply:
    repository = request.find(kind, id)
    name, files = repository.at(revision or "main")
    listed = [{"rfilename": path} for path in sorted(files)]
    plain = {"private": repository.private, "gated": False, "disabled": False, "tags": []}
    times = {"lastModified": TIME, "createdAt": TIME, "downloads": 0, "likes": 0}
    return Reply({"_id": "1", "id": id, "sha": name, "siblings": listed, **plain, **times})


def _entries(files: Mapping[str, Blob]) -> list[dict[str, Any]]:
    """Files and folders as the tree lists them."""
    folders = {path.rsplit("/", 1)[0] for path in files if "/" in path}
    found: list[dict[str, Any]] = [
        {"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in folders
    ]
    for path, blob in files.items():
        entry = {"type": "file", "oid": blob.id, "size": len(blob.data), "path": path}
        if blob.large:
            entry["lfs"] = {"oid": blob.sha256, "size": len(blob.data), "pointerSize": 130}
        found.append(entry)
    return sorted(found, key=lambda entry: str(entry["path"]))


def tree(request: Handler, kind: str, id: str, revision: str, path: str = "") -> Reply:
    _, files = request.find(kind, id).at(revision)
    start = f"{path}/" if path else ""
    entries = [e for e in _entries(files) if e["path"].startswith(start) and e["path"] != path]
    if request.query.get("recursive", "").lower() != "true":
        entries = [e for e in entries if "/" not in e["path"][len(start) :]]
    if path and not entries:
        raise Refusal(404, f"{path} does not exist", "EntryNotFound")
    first = int(request.query.get("cursor", 0))
    after = first + request.hub.page
    url = f"{request.hub.url}{urlsplit(request.path).path}"
    following = f'<{url}?recursive={request.query.get("recursive")}&cursor={after}>; rel="next"'
    return Reply(entries[first:after], headers={"Link": following} if entries[after:] else {})


def preupload(request: Handler, kind: str, id: str, revision: str) -> Reply:
    _, files = request.find(kind, id, write=True).at(revision)
    answers = []
    for file in request.json()["files"]:
        large = any(fnmatchcase(file["path"], p) for p in LARGE) or file["size"] > 10 * 2**20
        old = files.get(file["path"])
        oid = {"oid": old.sha256 if old.large else old.id} if old else {}
        mode = "lfs" if large else "regular"
        answers.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, **oid})
    return Reply({"files": answers})


def lfs_batch(request: Handler, kind: str, id: str) -> Reply:
    request.find(kind, id, write=True)
    objects = []
    for one in request.json()["objects"]:
        actions = {
            "upload": {"href": f"{request.hub.network}/lfs/{one['oid']}"},
            "verify": {"href": f"{request.hub.url}/lfs/{one['oid']}/verify"},
        }
        new = {} if one["oid"] in request.hub.objects else {"actions": actions}
        objects.append({"oid": one["oid"], "size": one["size"], **new})
    return Reply({"transfer": "basic", "objects": objects})


def lfs_upload(request: Handler, oid: str) -> Reply:
    _require_no_token(request)
    if hashlib.sha256(request.body).hexdigest() != oid:
        raise Refusal(400, "the uploaded bytes have another sha256")
    request.hub.objects[oid] = request.body
    return Reply()


def _require_no_token(request: Handler) -> None:
    """The storage behind the Hub is another's: the token must not reach it."""
    if "Authorization" in request.headers:
        raise Refusal(400, "Only one auth mechanism allowed")


def lfs_verify(request: Handler, oid: str) -> Reply:
    if len(request.hub.objects.get(oid, b"")) != request.json()["size"]:
        raise Refusal(404, "Object does not exist")
    return Reply()


def commit(request: Handler, kind: str, id: str, revision: str) -> Reply:
    repository = request.find(kind, id, write=True)
    name, files = repository.at(revision)
    lines = [json.loads(line) for line in request.body.splitlines()]
    header = next(line["value"] for line in lines if line["key"] == "header")
    if header.get("parentCommit", name) != name:
        raise Refusal(412, "A commit has happened since. Please refresh and try again.")
    files = dict(files)
    for line in lines:
        if line["key"] in OPERATIONS:
            OPERATIONS[line["key"]](request.hub, files, line["value"])
    revision = repository.commit(header["summary"], files)
    url = f"{request.hub.url}/{kind}s/{id}/commit/{revision}"
    return Reply({"success": True, "commitOid": revision, "commitUrl": url, "hookOutput": ""})


def _add(hub: HubServer, files: dict[str, Blob], value: Mapping[str, Any]) -> None:
    files[value["path"]] = Blob(base64.b64decode(value["content"]), False)


def _add_large(hub: HubServer, files: dict[str, Blob], value: Mapping[str, Any]) -> None:
    if value["oid"] not in hub.objects:
        raise Refusal(400, f"The LFS object of {value['path']} was never uploaded")
    files[value["path"]] = Blob(hub.objects[value["oid"]], True)


def _delete(hub: HubServer, files: dict[str, Blob], value: Mapping[str, Any]) -> None:
    if files.pop(value["path"], None) is None:
        raise Refusal(404, "A file with this name doesn't exist", "EntryNotFound")


OPERATIONS = {"file": _add, "lfsFile": _add_large, "deletedFile": _delete}


def resolve(request: Handler, kind: str, id: str, revision: str, path: str) -> Reply:
    """A file: a small one as it is, a large one by a redirect, as to a content network."""
    name, files = request.find(kind, id).at(revision)
    blob = files.get(path)
    if blob is None:
        raise Refusal(404, "Entry not found", "EntryNotFound")
    headers = {"X-Repo-Commit": name, "Accept-Ranges": "bytes"}
    if not blob.large:
        return _ranged(request, blob.data, {**headers, "ETag": f'"{blob.id}"'})
    headers |= {"X-Linked-Etag": f'"{blob.sha256}"', "X-Linked-Size": str(len(blob.data))}
    return Reply(b"", 302, {**headers, "Location": f"{request.hub.network}/lfs/{blob.sha256}"})


def lfs_download(request: Handler, oid: str) -> Reply:
    _require_no_token(request)
    if oid not in request.hub.objects:
        raise Refusal(404, "no such object")
    return _ranged(request, request.hub.objects[oid], {"ETag": f'"{oid}"'})


def _ranged(request: Handler, data: bytes, headers: Mapping[str, str]) -> Reply:
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
    if not found:
        return Reply(data, headers=headers)
    first, last = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
    span = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
    return Reply(data[first : last + 1], 206, {**headers, **span})


API = r"/api/(?P<kind>dataset|model)s/(?P<id>[^/]+/[^/]+)"
DATASET, MODEL = r"/(?P<kind>dataset)s/(?P<id>[^/]+/[^/]+)", r"/(?P<id>[^/]+/[^/]+)"
AT, PATH, LFS = r"/(?P<revision>[^/]+)", r"/(?P<path>.+)", r"\.git/info/lfs/objects/batch"


def of_model(route: Callable[..., Reply]) -> Callable[..., Reply]:
    """A model's pages have no kind in their address."""
    return lambda request, **found: route(request, **{"kind": "model", **found})


ROUTES: list[tuple[tuple[str, ...], str, Callable[..., Reply]]] = [
    (("GET",), "/api/whoami-v2", whoami),
    (("POST",), "/api/repos/create", create_repo),
    (("POST",), "/api/validate-yaml", validate_yaml),
    (("GET",), API, info),
    (("GET",), f"{API}/revision{AT}", info),
    (("GET",), f"{API}/tree{AT}(?:{PATH})?", tree),
    (("POST",), f"{API}/preupload{AT}", preupload),
    (("POST",), f"{API}/commit{AT}", commit),
    (("PUT",), r"/lfs/(?P<oid>\w{64})", lfs_upload),
    (("GET", "HEAD"), r"/lfs/(?P<oid>\w{64})", lfs_download),
    (("POST",), r"/lfs/(?P<oid>\w{64})/verify", lfs_verify),
    (("POST",), DATASET + LFS, lfs_batch),
    (("POST",), MODEL + LFS, of_model(lfs_batch)),
    (("GET", "HEAD"), f"{DATASET}/resolve{AT}{PATH}", resolve),
    (("GET", "HEAD"), f"{MODEL}/resolve{AT}{PATH}", of_model(resolve)),
]
