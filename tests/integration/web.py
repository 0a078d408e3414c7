"""`tandem web`: who is let in, what the stream says; in a browser, what the page shows and does."""
import http.client
import re
import socket

import chromium
from world import *

FOREVER = ["--size", "60m", "--gpu", "10ms", "--cpu", "5ms", "--steps", "1000000"]
WEB = f"{BUILD}/src/web/tandem-web"


class Server:
    """tandem web of a world, with its address and token."""

    def __init__(self, world, *options, **extra):
        if not os.path.exists(WEB):
            raise Skip("tandem-web was not built: libmicrohttpd is not here")
        self.process = subprocess.Popen(
            [TANDEM, "web", "-d", "200ms", *options], env=world.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **extra)
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.process.stderr.read()
        self.token = self.url[-32:]
        found = re.match(r"http://([\d.]+):(\d+)/\?token=[0-9a-f]{32}$", self.url)
        self.address = found and (found[1], int(found[2]))

    def ask(self, path, method="GET", body=None, **headers):
        """(status, text). Headers as keywords, with _ for -; the token unless given otherwise."""
        connection = http.client.HTTPConnection(*self.address, timeout=DEADLINE_S)
        headers.setdefault("Authorization", f"Bearer {self.token}")
        connection.request(method, path, body,
                           {k.replace("_", "-"): v for k, v in headers.items() if v is not None})
        response = connection.getresponse()
        self.headers = response.headers
        text = response.read().decode()
        connection.close()
        return response.status, text

    def plain(self, path, version):
        """A request as bytes."""
        return (f"GET {path} {version}\r\nHost: localhost\r\n"
                f"Authorization: Bearer {self.token}\r\n\r\n").encode()

    def do(self, verb, job, **headers):
        return self.ask("/do", "POST", json.dumps({"verb": verb, "job": job}), **headers)

    def end(self):
        self.process.terminate()
        out, err = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, (self.process.returncode, out, err)


class Stream:
    """The stream as a browser reads it."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection(*server.address, timeout=DEADLINE_S)
        self.connection.request("GET", "/stream",
                                headers={"Authorization": f"Bearer {server.token}"})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.status
        self.fields, self.text = None, ""

    def next(self):
        """(name, value)"""
        name = self.response.readline().decode().strip()
        data = self.response.readline().decode().strip()
        self.response.readline()
        assert name.startswith("event: ") and data.startswith("data: "), (name, data)
        return name[7:], json.loads(data[6:])

    def round(self):
        """The rows of the next round, as objects: {"jobs": [...], "others": [...]}."""
        while True:
            name, value = self.next()
            self.text += json.dumps(value)
            if name == "hello":
                self.fields = value["fields"]
            if name == "round":
                return {of: [dict(zip(self.fields[field], row)) for row in value[of]]
                        for of, field in (("jobs", "job"), ("others", "others"))}

    def jobs(self):
        return self.round()["jobs"]


def start(world, name, *options):
    return world.start(TANDEM, "run", "--name", name, *options, "--", TRAIN, *FOREVER)


def states(world):
    return {job["name"]: job["state"] for job in world.jobs()}


def end_all(*programs):
    for program in programs:
        program.kill()
        program.communicate()


def only_who_has_the_token_is_let_in():
    with World() as world:
        server = Server(world)
        host = f"127.0.0.1:{server.address[1]}"
        for path in ("/", "/app.js", "/stream", "/metrics", "/nothing"):
            assert server.ask(path, Authorization=None)[0] == 403, path
            assert server.ask(path, Authorization="Bearer " + "0" * 32)[0] == 403, path
            assert server.ask(path, Host="evil.example")[0] == 403, path
            assert server.ask(path, Origin="http://evil.example")[0] == 403, path
        assert server.ask(f"/?token={'0' * 32}", Authorization=None)[0] == 403
        assert server.ask(f"/metrics?token={server.token}", Authorization=None)[0] == 403
        status, text = server.ask(f"/?token={server.token}", Authorization=None)
        assert status == 200 and "<title>tandem</title>" in text
        cookie = server.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie
        assert "default-src 'none'" in server.headers["Content-Security-Policy"]
        cookie = cookie.split(";")[0]
        assert server.ask("/metrics", Authorization=None, Cookie=cookie)[0] == 200
        page = {"Authorization": None, "Cookie": cookie}
        assert server.ask("/metrics", Sec_Fetch_Site="same-site", **page)[0] == 403
        # Who changes something has to be our page, or a program with the token.
        assert server.do("pause", "1.a", **page)[0] == 403
        assert server.do("pause", "1.a", Origin="http://localhost:1", **page)[0] == 403
        assert server.do("pause", "1.a", Origin=f"http://{host}", **page)[0] == 404
        assert server.do("pause", "1.a")[0] == 404  # there is no such job
        assert server.do("stop", "1.a")[0] == 400
        assert server.ask("/do", "POST", "x" * 5000)[0] == 400
        assert server.ask("/", "PUT", "x")[0] == 405
        assert server.ask("/nothing")[0] == 404
        server.end()


def what_is_typed_wrong_is_quoted():
    with World() as world:
        for arguments, quoted in (
                (["--listen", "0.0.0.0:0"], "0.0.0.0:0"), (["--listen", "80"], "'80'"),
                (["-d", "1ms"], '"1ms"'), (["extra"], '"extra"'),
                (["--token-file", "/dev/null"], "/dev/null"), (["--nonsense"], "--nonsense")):
            done = world.call(TANDEM, "web", *arguments)
            assert done.returncode == 125 and quoted in done.stderr, (arguments, done)
        done = world.call(TANDEM, "web", TANDEM_WEB=f"{world.directory}/none")
        assert done.returncode == 125 and "No such file" in done.stderr, done
        assert "usage: tandem web" in world.call(TANDEM, "web", "--help").stdout


def a_token_may_live_in_a_file():
    with World() as world:
        file = f"{world.directory}/token"
        first = Server(world, "--token-file", file)
        first.end()
        assert os.stat(file).st_mode & 0o777 == 0o600
        second = Server(world, "--token-file", file)
        second.end()
        assert first.token == second.token
        os.chmod(file, 0o644)
        done = world.call(TANDEM, "web", "--token-file", file)
        assert done.returncode == 125 and "others may read" in done.stderr, done


def a_unix_socket_is_its_users_alone():
    with World() as world:
        path = f"{world.directory}/web"
        server = Server(world, "--listen", path)
        assert os.stat(path).st_mode & 0o777 == 0o600
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(DEADLINE_S)
        peer.connect(path)
        peer.sendall(server.plain("/metrics", "HTTP/1.0"))
        text = b""
        while data := peer.recv(65536):
            text += data
        assert b" 200 " in text and b"\ntandem_up " in text, text
        server.end()
        assert not os.path.exists(path)


def the_stream_follows_the_daemon():
    """Without one, with one, with a job, and when it has ended."""
    with World() as world:
        server = Server(world)
        stream = Stream(server)
        name, hello = stream.next()
        assert name == "hello" and [c["id"] for c in hello["columns"]][0] == "gpu", hello
        name, state = stream.next()
        assert name == "state" and "no daemon at" in state["why"], state
        program = start(world, "one", "--mem", "200m")
        for _ in tries(1000, lambda: "the job has a limit"):
            if job := next((j for j in stream.jobs() if j["limit"]), None):
                break
        assert job["name"] == "one" and job["limit"] == 200 << 20 and job["gpu"] == 0, job
        assert server.ask("/metrics")[1].count("tandem_job_limit_bytes{") == 1
        status, text = server.do("explain", job["job"])
        said = json.loads(text)
        assert status == 200 and said["status"] == 0 and "one" in said["text"], text
        world.call(TANDEM, "stop", "--force")
        for _ in tries(1000, lambda: "the daemon has ended"):
            name, value = stream.next()
            if name == "state" and value["why"]:
                break
        end_all(program)
        server.end()


def other_users_jobs_are_sums():
    """The daemon is root's, and so is a job; the page is another user's, who has one as well."""
    if os.getuid():
        raise Skip("only root has another user")
    other = {"user": 65534, "group": 65534, "extra_groups": []}
    with World() as world:
        # It may use the software GPU as well.
        os.chmod(world.directory, 0o711)
        subprocess.run(["chmod", "-R", "a+rwX", f"{world.directory}/gpu"], check=True)
        programs = [start(world, "secret", "--mem", "90m")]
        until(lambda: any("limit_bytes" in job for job in world.jobs()), "root's job is there")
        try:
            programs.append(subprocess.Popen(
                [SOFTGPU, "run", "--", TANDEM, "run", "--name", "own", "--", TRAIN, *FOREVER],
                env=world.environment, stdout=subprocess.DEVNULL, **other))
        except PermissionError as why:
            end_all(*programs)
            raise Skip(f"the other user may not read the build: {why}") from why
        until(lambda: [job["demanded_bytes"] >= 60 << 20 for job in world.jobs()] == [True] * 2,
              "both are there with all of their memory")
        secret = next(job for job in world.jobs() if job["name"] == "secret")
        server = Server(world, **other)
        stream = Stream(server)
        until(lambda: len(stream.round()["jobs"]) == 1, "its own job is on the page")
        seen = stream.round()
        assert [job["name"] for job in seen["jobs"]] == ["own"], seen
        assert [(o["gpu"], o["processes"]) for o in seen["others"]] == [(0, 1)], seen
        assert seen["others"][0]["demanded"] == secret["demanded_bytes"], seen
        # Nothing tells the name, the id or the pid: neither rounds nor events nor metrics.
        metrics = server.ask("/metrics")[1]
        assert "tandem_others_processes{" in metrics, metrics
        for text in (stream.text, metrics):
            assert "secret" not in text and secret["job"] not in text, text
            assert f'"{secret["pid"]}"' not in text, text
        for verb in ("explain", "pause", "resume", "evict", "restart"):
            for job in (secret["job"], "secret", str(secret["pid"])):
                assert server.do(verb, job)[0] == 404, (verb, job)
        assert states(world)["secret"] != "paused" and programs[0].poll() is None
        end_all(*programs)
        server.end()


def who_does_not_read_holds_up_nobody():
    with World() as world:
        program = start(world, "one")
        until(lambda: world.jobs(), "there is a job")
        server = Server(world, "-d", "100ms")
        silent = []
        for _ in range(8):
            peer = socket.socket()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            peer.connect(server.address)
            peer.sendall(server.plain("/stream", "HTTP/1.1"))
            silent.append(peer)
        stream = Stream(server)
        for _ in range(20):
            assert stream.jobs()
        end_all(program)
        server.end()


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055)**2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def colours_stand_out_from_all_that_is_behind_them():
    """WCAG 2.1: 4.5 for text (1.4.3), 3 for what a picture needs (1.4.11)."""
    with open(f"{os.path.dirname(__file__)}/../../src/web/page/style.css") as f:
        themes = [dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{6});", block))
                  for block in re.findall(r":root \{(.*?)\}", f.read(), re.DOTALL)]
    assert len(themes) == 2, themes
    for theme in themes:
        least = {**dict.fromkeys(("text", "quiet", "faint", "accent", "good", "wait", "bad"), 4.5),
                 **dict.fromkeys((f"j{i}" for i in range(8)), 3)}
        for name, value in least.items():
            for behind in ("bg", "card", "raised", "accent-soft"):
                got = contrast(theme[name], theme[behind])
                assert got >= value, (name, behind, theme[name], got)


def a_page_shows_jobs_pauses_and_evicts_one():
    if not chromium.find():
        raise Skip("chromium is not installed")
    with World("--memory", "128m") as world:
        programs = [start(world, name) for name in ("alpha", "beta", "gamma")]
        until(lambda: len(world.jobs()) == 3, "three jobs are there")
        server = Server(world)
        browser = chromium.Browser()
        try:
            browser.open(server.url)
            keys = ("[...document.querySelectorAll('#table tr[data-key]')]"
                    ".map(r => [r.dataset.key, r.innerText])")
            rows = "[...document.querySelectorAll('#table tr[data-key]')].map(r => r.innerText)"

            def row(name):
                return next((r for r in browser.ask(rows) if name in r), "")

            def text(selector):
                return browser.ask(f"document.querySelector('{selector}')?.innerText") or ""

            def has(selector):
                return browser.ask(f"document.querySelector('{selector}') !== null")

            names = ("alpha", "beta", "gamma")
            until(lambda: all(row(name) for name in names), "three rows are shown")
            assert browser.ask("location.search") == "", "the token does not stay in the address"
            label = "document.querySelector('#gpus canvas').getAttribute('aria-label')"
            until(lambda: "beta" in (browser.ask(label) or ""), "the lanes show it")
            # The keyboard: go to a job, pause it.
            browser.press("j")
            until(lambda: text("#detail h2") in names, "one is selected")
            name = text("#detail h2")
            until(lambda: text(".said p b"), "it is explained, as a list of causes")
            browser.press("p")
            until(lambda: states(world)[name] == "paused", "the daemon has paused it")
            until(lambda: "paused" in row(name), "the row says so")
            until(lambda: has("[data-verb=resume]"), "it can be resumed")
            browser.ask("document.querySelector('[data-verb=resume]').focus()")
            browser.press("Enter")
            until(lambda: states(world)[name] != "paused", "it goes on")
            focused = "document.activeElement.dataset.verb"
            until(lambda: browser.ask(focused) == "pause", "the focus is where it was")
            # Where the focus is on the events, or on the job, the keys scroll these.
            browser.ask("document.querySelector('.lower').scrollIntoView()")
            for part in ("#events", "#detail"):
                browser.ask(f"document.querySelector('{part}').style.maxHeight = '60px'")

                def is_scrolled():
                    """What is shown there may have come only now."""
                    browser.ask(f"document.querySelector('{part}').focus()")
                    browser.press("PageDown")
                    return browser.ask(f"document.querySelector('{part}').scrollTop") > 0

                until(is_scrolled, f"{part} is scrolled")
                browser.ask(f"document.querySelector('{part}').style.maxHeight = ''")
            assert text("#detail h2") == name, "the cursor has not moved"
            # Who fails or is late is counted in the bar.
            troubled = '[{state: "failed", p99: null, slo: null}, {state: "idle", p99: 2, slo: 1}]'
            trouble = browser.ask(f'import("/model.js").then((m) => m.trouble({troubled}))')
            assert trouble == "1 failed, 1 late" and text("#trouble") == "", trouble
            # The chart of memory says whose it is in words.
            label = "document.querySelectorAll('#gpus canvas')[1].getAttribute('aria-label')"
            until(lambda: all(f"{n} " in (browser.ask(label) or "") for n in names),
                  "all are named")
            # A filter leaves the one that it names.
            browser.press("/")
            browser.call("Input.insertText", text="gam")
            until(lambda: not row("alpha") and row("gamma"), "the filter holds")
            browser.press("Escape")
            until(lambda: row("alpha"), "Escape shows all")
            # It is evicted when that is asked for twice.
            key = next(k for k in browser.ask(keys) if "alpha" in k[1])[0]
            browser.ask(f"document.querySelector(`#table tr[data-key='{key}']`).click()")
            until(lambda: text("#detail h2") == "alpha", "alpha is selected")
            browser.press("x")
            until(lambda: has("[data-verb=evict].asks"), "it is asked whether that is meant")
            assert programs[0].poll() is None

            def is_evicted():
                """The second key has to come within 4 s of the first."""
                if "alpha" in states(world) and text("#detail h2") == "alpha":
                    browser.press("x")
                return programs[0].poll() is not None

            until(is_evicted, "it has ended")
            until(lambda: row("gamma") and not row("alpha"), "the end of a job is seen")
            world.call(TANDEM, "stop", "--force")
            until(lambda: "no daemon" in text("#notice"), "the page says that none answers")
            assert browser.problems == [], browser.problems
        finally:
            browser.close()
            end_all(*programs)
            server.end()


run_cases([
    only_who_has_the_token_is_let_in,
    what_is_typed_wrong_is_quoted,
    a_token_may_live_in_a_file,
    a_unix_socket_is_its_users_alone,
    the_stream_follows_the_daemon,
    other_users_jobs_are_sums,
    who_does_not_read_holds_up_nobody,
    colours_stand_out_from_all_that_is_behind_them,
    a_page_shows_jobs_pauses_and_evicts_one,
], at_once=3)
