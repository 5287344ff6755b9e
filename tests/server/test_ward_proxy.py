"""The proxy of docs/ward.md: Debian's nginx with a login, in front of a real server, with hundreds of idle clients."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from support.datasets import r2med_folder
from support.processes import PATIENCE, wait_for
from support.serving import serving

PAGE = Path(__file__).parents[2] / "docs" / "ward.md"
TOKEN = "a-secret-of-this-test"
LOGIN = ("anna", "a password")
IDLE = 400
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

MAIN = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{ worker_connections 768; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""
"""What Debian's nginx.conf has around the file of the page, for a user without rights."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def password_file(folder: Path) -> Path:
    hashed = subprocess.run(["openssl", "passwd", "-apr1", LOGIN[1]], capture_output=True, text=True, check=True)
    file = folder / "users"
    file.write_text(f"{LOGIN[0]}:{hashed.stdout}")
    return file


def certificate(folder: Path) -> tuple[Path, Path]:
    made, key = folder / "ward.pem", folder / "ward.key"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout {key} -out {made}"
    subprocess.run(["openssl", *words.split()], capture_output=True, check=True)
    return made, key


def proxy_file(folder: Path, port: int, server: int) -> Path:
    """Write the file of the page, with the ports, the token and the files of this test."""
    block = next(text for text in re.findall(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if "ssl" in text)
    made, key = certificate(folder)
    for there, here in {
        "443 ssl": f"127.0.0.1:{port} ssl",
        "search.ward.example": "localhost",
        "/etc/ssl/certs/ward.pem": str(made),
        "/etc/ssl/private/ward.key": str(key),
        "/etc/nginx/r2med.users": str(password_file(folder)),
        "127.0.0.1:8000": f"127.0.0.1:{server}",
        "Bearer TOKEN": f"Bearer {TOKEN}",
    }.items():
        assert there in block, f"docs/ward.md has no {there}"
        block = block.replace(there, here)
    file = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    file.write_text(MAIN.format(folder=folder, user=user, server=block))
    return file


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[int]:
    """Yield the port of nginx, which passes requests on to a server of a small dataset."""
    if not NGINX or not shutil.which("openssl"):
        pytest.skip("no nginx or no openssl: apt-get install nginx-light openssl")
    port = free_port()
    with serving(r2med_folder(tmp_path / "mine"), R2MED_SERVE_TOKEN=TOKEN, R2MED_HOME=tmp_path / "home") as server:
        file = proxy_file(tmp_path, port, server.port)
        with subprocess.Popen([NGINX, "-p", tmp_path, "-e", tmp_path / "error.log", "-c", file]) as nginx:
            try:
                wait_for(lambda: nginx.poll() is not None or is_open(port))
                assert nginx.poll() is None, (tmp_path / "error.log").read_text()
                yield port
            finally:
                nginx.terminate()


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def idle_clients(stack: ExitStack, port: int) -> None:
    """Open connections: some say nothing, some send half a request, and some have logged in and wait."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    for number in range(IDLE):
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
        if number % 4 == 0:
            secure = stack.enter_context(trusting.wrap_socket(client, server_hostname="localhost"))
            secure.sendall(b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Le")


def test_a_ward_searches_through_a_login_while_hundreds_of_clients_are_idle(proxy: int, tmp_path: Path) -> None:
    with ExitStack() as stack:
        idle_clients(stack, proxy)
        address = f"https://localhost:{proxy}"
        client = stack.enter_context(httpx.Client(base_url=address, verify=False, timeout=PATIENCE, trust_env=False))
        asked = {"json": {"question": "iron"}, "headers": {"Origin": address}}
        assert [client.get("/").status_code, client.post("/search", **asked).status_code] == [401, 401]
        client.auth = LOGIN
        page = client.get("/")
        assert page.status_code == 200
        assets = set(re.findall(r"assets/[\w.]+", page.text))
        assert assets and {client.get(f"/{file}").status_code for file in assets} == {200}
        assert client.get("/systems").json()["dataset"] == "mine"
        assert client.post("/search", **asked).json()["passages"]
        other_site = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        assert client.post("/search", **asked | {"headers": other_site}).status_code == 403
    assert "iron" not in (tmp_path / "access.log").read_text()


def test_the_page_of_the_ward_is_short() -> None:
    assert len(PAGE.read_text("utf-8").split()) <= 700
