#!/usr/bin/env python3
"""tandem-admission, asked by HTTPS as an API server asks. TAP. usage: admission.py BUILD
[CASE]..."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile

from world import BUILD, DEADLINE_S, Skip, run_cases, until

ADMISSION = f"{BUILD}/src/kubernetes/admission/tandem-admission"


def pod(gpu, **annotations):
    resources = {"limits": {"tandem.dev/gpu": gpu}, "requests": {"tandem.dev/gpu": gpu}}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "annotations": {f"tandem.dev/{key}": value for key, value
                                                      in annotations.items()}},
            "spec": {"schedulerName": "default-scheduler",
                     "containers": [{"name": "train", "image": "x", "resources": resources}]}}


def review(its_pod):
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {"uid": "u-1", "kind": {"group": "", "version": "v1", "kind": "Pod"},
                        "namespace": "lab", "operation": "CREATE", "object": its_pod}}


class Server:
    """The program with a certificate of its own."""

    def __init__(self, *options):
        if not os.path.exists(ADMISSION):
            raise Skip("tandem-admission was not built: libgnutls28-dev or libmicrohttpd-dev is "
                       "missing")
        if not shutil.which("openssl"):
            raise Skip("openssl is missing")
        self.options = options

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="tandem-admission-")
        self.renew("first")
        with open(f"{self.directory}/log", "w") as log:
            self.process = subprocess.Popen(
                [ADMISSION, "--cert", f"{self.directory}/tls.crt", "--key",
                 f"{self.directory}/tls.key", "--listen", "127.0.0.1:0", "--reload", "20ms",
                 *self.options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: "port=" in self.log() or self.process.poll() is not None, "it serves")
        self.port = int(self.log().split("port=")[1].split()[0])
        return self

    def __exit__(self, kind, *_):
        if kind:
            print("# " + self.log().replace("\n", "\n# "))
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory)

    def log(self):
        with open(f"{self.directory}/log") as f:
            return f.read()

    def renew(self, name):
        """A certificate for the name, in the place of the one before, as a Secret changes."""
        new = f"{self.directory}/new"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-days", "2",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{new}.key", "-out",
                        f"{new}.crt"], check=True, capture_output=True)
        os.rename(f"{new}.key", f"{self.directory}/tls.key")
        os.rename(f"{new}.crt", f"{self.directory}/tls.crt")

    def connect(self):
        """A connection that trusts the certificate in the file alone."""
        trust = ssl.create_default_context(cafile=f"{self.directory}/tls.crt")
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=trust,
                                           timeout=DEADLINE_S)

    def ask(self, body, method="POST", path="/pods"):
        connection = self.connect()
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def judge(self, its_pod):
        status, text = self.ask(json.dumps(review(its_pod)))
        assert status == 200, (status, text)
        return json.loads(text)["response"]


# -- cases --

def a_pod_gets_its_scheduler_and_its_settings():
    with Server("--scheduler", "tandem") as server:
        answer = server.judge(pod("50", **{"class": "guaranteed"}))
        assert answer["uid"] == "u-1" and answer["allowed"], answer
        patch = json.loads(base64.b64decode(answer["patch"]))
        assert patch == [
            {"op": "add", "path": "/spec/containers/0/env",
             "value": [{"name": "TANDEM_CLASS", "value": "guaranteed"}]},
            {"op": "add", "path": "/spec/schedulerName", "value": "tandem"}], patch
        assert "pod=lab/p changed" in server.log(), server.log()


def a_wrong_number_is_refused_with_a_sentence():
    with Server() as server:
        answer = server.judge(pod("150"))
        assert not answer["allowed"] and '"150"' in answer["status"]["message"], answer
        assert "pod=lab/p refused: " in server.log(), server.log()


def several_questions_come_on_one_connection():
    with Server() as server:
        connection = server.connect()
        for number in range(20):
            connection.request("POST", "/pods", json.dumps(review(pod(str(90 + number)))))
            answer = json.loads(connection.getresponse().read())["response"]
            assert answer["allowed"] == (number <= 10), (number, answer)
        connection.close()


def its_counters_are_served():
    with Server("--quiet") as server:
        server.judge(pod("50"))
        server.judge(pod("50", mem="8Gi"))
        server.judge(pod("101"))
        assert server.ask("nothing")[0] == 400
        status, text = server.ask(None, "GET", "/metrics")
        assert status == 200, text
        for verdict in ("unchanged", "changed", "refused", "unreadable"):
            assert f'tandem_admission_reviews_total{{verdict="{verdict}"}} 1\n' in text, text
        assert server.ask(None, "GET", "/healthz") == (200, "ok\n")
        assert "pod=" not in server.log(), server.log()


def other_paths_and_methods_are_refused():
    with Server() as server:
        assert server.ask("{}", "POST", "/")[0] == 404
        assert server.ask(None, "GET", "/pods")[0] == 404
        assert server.ask("{}", "PUT")[0] == 405


def a_renewed_certificate_is_used_without_a_restart():
    with Server() as server:
        open_since = server.connect()
        open_since.request("GET", "/healthz")
        assert open_since.getresponse().read() == b"ok\n"
        server.renew("second")
        until(lambda: "a new certificate is in use" in server.log(), "it is read")
        assert server.judge(pod("50"))["allowed"]  # it trusts the second one alone
        open_since.request("GET", "/healthz")
        assert open_since.getresponse().read() == b"ok\n"


def files_that_do_not_belong_together_change_nothing():
    with Server() as server:
        trust = ssl.create_default_context(cafile=f"{server.directory}/tls.crt")
        server.renew("second")
        until(lambda: "a new certificate" in server.log(), "it is read")
        second = f"{server.directory}/second.crt"
        shutil.copy(f"{server.directory}/tls.crt", second)
        with open(f"{server.directory}/tls.crt", "w") as f:
            f.write("-----BEGIN CERTIFICATE-----\nbroken\n")
        until(lambda: "the one before stays" in server.log(), "it says so")
        trust = ssl.create_default_context(cafile=second)
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=trust,
                                                 timeout=DEADLINE_S)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"


def a_body_that_is_too_large_is_refused():
    with Server() as server:
        status, text = server.ask("x" * (25 << 20))
        assert status == 413 and "24 MiB" in text, (status, text)
        # The most that etcd keeps, as an API server may write it.
        large = pod("150")
        large["spec"]["containers"][0]["args"] = ["\1" * (3 << 19)] * 2
        assert len(json.dumps(review(large))) > 18 << 20
        assert not server.judge(large)["allowed"]


def who_sends_nothing_or_no_tls_keeps_nobody_out():
    with Server() as server:
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" + b"\0" * 1000)
        assert server.judge(pod("50"))["allowed"]
        for s in silent:
            s.close()
        assert server.process.poll() is None


def it_ends_with_sigterm():
    with Server() as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=DEADLINE_S) == 0


def bad_options_are_quoted():
    with Server() as server:
        files = ["--cert", f"{server.directory}/tls.crt", "--key", f"{server.directory}/tls.key"]
        for options, status, said in (
                ([], 125, "--cert is missing"), (files[:2], 125, "--key is missing"),
                (["--cert", "/nowhere", *files[2:]], 1, "/nowhere"),
                (["--cert", files[3], "--key", files[3]], 1, "tls.key"),
                ([*files, "--listen", "a:b"], 1, '"a:b"'),
                ([*files, "--listen", "70000"], 1, '"70000"'),
                ([*files, "--listen", f"127.0.0.1:{server.port}"], 1, "in use"),
                ([*files, "--resource", "A B"], 125, '"A B"'),
                ([*files, "--scheduler", ""], 125, '""'),
                ([*files, "--reload", "1ns"], 125, '"1ns"'), ([*files, "x"], 125, '"x"'),
                ([*files, "--nothing"], 125, "--nothing")):
            done = subprocess.run([ADMISSION, *options], capture_output=True, text=True,
                                  timeout=DEADLINE_S)
            assert done.returncode == status and said in done.stderr, (options, done)
        done = subprocess.run([ADMISSION, "--help"], capture_output=True, text=True)
        assert not done.returncode and "--scheduler NAME" in done.stdout, done


run_cases([a_pod_gets_its_scheduler_and_its_settings, a_wrong_number_is_refused_with_a_sentence,
           several_questions_come_on_one_connection, its_counters_are_served,
           other_paths_and_methods_are_refused, a_renewed_certificate_is_used_without_a_restart,
           files_that_do_not_belong_together_change_nothing, a_body_that_is_too_large_is_refused,
           who_sends_nothing_or_no_tls_keeps_nobody_out, it_ends_with_sigterm,
           bad_options_are_quoted])
