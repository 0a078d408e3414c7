#!/usr/bin/env python3
"""The device plugin beside a kubelet: one of python3-grpcio's, and raw HTTP/2 as old kubelets send
it. With the software GPU. TAP. usage: kubernetes.py BUILD [CASE]..."""
import concurrent.futures
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

from kube_world import Cluster
from world import (BUILD, DEADLINE_S, LARGE, LIBRARY, SMALL, SOFTGPU, TANDEM, TRAIN, Skip, World,
                   run_cases, until)

DEBIANS_PYTHON = "/usr/bin/python3"  # it has Debian's modules

try:
    import grpc
except ImportError:
    if sys.executable != DEBIANS_PYTHON and os.path.exists(DEBIANS_PYTHON):
        os.execv(DEBIANS_PYTHON, [DEBIANS_PYTHON, *sys.argv])
    grpc = None

PLUGIN = f"{BUILD}/src/kubernetes/tandem-device-plugin"


# -- messages: a number of a field -> its values, in the order in which they came --

def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def read(message):
    fields, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = number()
        value = number()
        if key & 7:
            value, at = message[at:at + value], at + value
        fields.setdefault(key >> 3, []).append(value)
    return fields


def texts(fields, number):
    return [value.decode() for value in fields.get(number, [])]


def pairs(fields, number):
    return {texts(read(pair), 1)[0]: texts(read(pair), 2)[0] for pair in fields.get(number, [])}


# -- a kubelet --

class Kubelet:
    """Its registration, and its calls of the plugin."""

    def __init__(self, directory, calls_first=False, refuses=False):
        self.directory, self.registered, self.calls_first = directory, [], calls_first
        self.refuses = refuses  # every registration
        self.arrived = threading.Event()

    def __enter__(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        handler = grpc.unary_unary_rpc_method_handler(self.register)
        self.server.add_generic_rpc_handlers([
            grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": handler})])
        self.server.add_insecure_port(f"unix:{self.directory}/kubelet.sock")
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()
        path = f"{self.directory}/kubelet.sock"
        if os.path.exists(path):
            os.unlink(path)

    def register(self, message, context):
        request = read(message)
        self.registered.append(request)
        if self.refuses:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not now")
        if self.calls_first:  # as kubelet 1.36 does: it does not answer before it has the list
            with self.channel() as channel:
                assert next(self.watch(channel))
        self.arrived.set()
        return b""

    def channel(self):
        return grpc.insecure_channel(f"unix:{self.directory}/tandem.sock")

    @staticmethod
    def watch(channel):
        """The lists of devices: {name: health}."""
        call = channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch")
        for message in call(b"", timeout=DEADLINE_S):
            yield {texts(read(device), 1)[0]: texts(read(device), 2)[0]
                   for device in read(message).get(1, [])}

    def call(self, method, message=b""):
        with self.channel() as channel:
            done = channel.unary_unary(f"/v1beta1.DevicePlugin/{method}")(
                message, timeout=DEADLINE_S)
        return read(done)

    def allocate(self, *containers):
        """For each container: its variables, its mounts, its CDI devices."""
        request = b"".join(field(1, b"".join(field(1, name) for name in names))
                           for names in containers)
        given = []
        for response in self.call("Allocate", request).get(1, []):
            response = read(response)
            mounts = {texts(read(mount), 1)[0]: (texts(read(mount), 2)[0], read(mount).get(3))
                      for mount in response.get(2, [])}
            given.append((pairs(response, 1), mounts,
                          [texts(read(device), 1)[0] for device in response.get(5, [])]))
        return given

    def prefer(self, available, must, size):
        request = field(1, b"".join(field(1, name) for name in available)
                        + b"".join(field(2, name) for name in must) + field(3, size))
        return texts(read(self.call("GetPreferredAllocation", request)[1][0]), 1)


class Node(World):
    """A world with a daemon that serves, the folder of a kubelet, and the plugin."""

    def __init__(self, *softgpu_options, plugin_options=()):
        super().__init__(*softgpu_options)
        self.plugin_options = plugin_options

    def __enter__(self):
        super().__enter__()
        self.plugin = None
        self.folder = f"{self.directory}/kubelet"
        os.mkdir(self.folder)
        try:
            self.begin_daemon()
            self.begin_plugin()
        except BaseException as problem:
            self.__exit__(type(problem))
            raise
        return self

    def begin_daemon(self):
        assert not self.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true").returncode

    def begin_plugin(self):
        with open(f"{self.directory}/plugin.log", "a") as log:
            self.plugin = subprocess.Popen(
                [PLUGIN, "--library", os.path.dirname(LIBRARY), "--kubelet-dir", self.folder,
                 "--period", "50ms", *self.plugin_options], env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: os.path.exists(f"{self.folder}/tandem.sock"), "the plugin serves")

    def __exit__(self, kind, *rest):
        if kind:
            print("# " + self.log().replace("\n", "\n# "))
        if self.plugin:
            self.plugin.kill()
            self.plugin.wait()
        super().__exit__(kind, *rest)

    def log(self):
        with open(f"{self.directory}/plugin.log") as f:
            return f.read()

    def environment_in(self, variables):
        """What a program in the container has; paths in it are those of this node."""
        set_ = dict(variables)
        set_["LD_PRELOAD"] = set_["LD_PRELOAD"].replace(
            "/opt/tandem", os.path.dirname(LIBRARY))
        set_["TANDEM_SOCKET"] = self.environment["TANDEM_SOCKET"]
        return set_


def node(*softgpu_options, **options):
    if not os.path.exists(PLUGIN):
        raise Skip("tandem-device-plugin was not built: libnghttp2-dev or libprotobuf-c-dev is "
                   "missing")
    if not grpc:
        raise Skip("python3-grpcio is missing")
    return Node(*softgpu_options, **options)


def listed(kubelet, condition, what):
    """Follows the list until it is so."""
    with kubelet.channel() as channel:
        for devices in kubelet.watch(channel):
            if condition(devices):
                return devices
    raise AssertionError(what)


def of_gpus(devices):
    return sorted({name.split(":")[0] for name in devices})


# -- cases --

def it_registers_and_offers_each_gpu_in_hundredths():
    with node("--gpus", "2") as world, Kubelet(world.folder) as kubelet:
        assert kubelet.arrived.wait(DEADLINE_S)
        request = kubelet.registered[0]
        assert texts(request, 1) == ["v1beta1"] and texts(request, 2) == ["tandem.sock"], request
        assert texts(request, 3) == ["tandem.dev/gpu"] and read(request[4][0]) == {2: [1]}
        devices = listed(kubelet, lambda d: len(d) == 200, "200 slices")
        assert set(devices.values()) == {"Healthy"} and len(of_gpus(devices)) == 2, devices
        assert kubelet.call("GetDevicePluginOptions") == {2: [1]}


def a_kubelet_that_wants_the_list_first_has_it():
    with node() as world, Kubelet(world.folder, calls_first=True) as kubelet:
        assert kubelet.arrived.wait(DEADLINE_S)
        until(lambda: "registered with the kubelet" in world.log(), "it is registered")


def a_kubelet_that_refuses_is_asked_again():
    """The plugin hangs up when a kubelet's socket appears, so it may miss the first refusal."""
    with node() as world, Kubelet(world.folder, refuses=True) as kubelet:
        until(lambda: "status 3: not now" in world.log(), "the plugin was refused")
        assert not kubelet.arrived.is_set()
        kubelet.refuses = False
        assert kubelet.arrived.wait(DEADLINE_S)
        until(lambda: "registered with the kubelet" in world.log(), "it is registered")


def a_kubelet_that_starts_again_is_told_again():
    with node() as world:
        with Kubelet(world.folder) as first:
            assert first.arrived.wait(DEADLINE_S)
        os.unlink(f"{world.folder}/tandem.sock")  # a kubelet's first act
        with Kubelet(world.folder) as second:
            assert second.arrived.wait(DEADLINE_S)
            assert len(listed(second, bool, "a list")) == 100


def another_plugins_socket_is_no_new_kubelet():
    with node() as world, Kubelet(world.folder) as kubelet:
        assert kubelet.arrived.wait(DEADLINE_S)
        assert len(listed(kubelet, bool, "a list")) == 100
        while kubelet.arrived.wait(3):  # its own socket may have come meanwhile
            kubelet.arrived.clear()
        with open(f"{world.folder}/other.sock", "w"):
            assert not kubelet.arrived.wait(1.5)


def a_kubelet_that_lost_the_list_is_told_again():
    """A kubelet calls ListAndWatch once for each registration."""
    with node() as world, Kubelet(world.folder) as kubelet:
        assert kubelet.arrived.wait(DEADLINE_S)
        assert len(listed(kubelet, bool, "a list")) == 100
        kubelet.arrived.clear()
        assert kubelet.arrived.wait(DEADLINE_S)
        assert len(listed(kubelet, bool, "a list")) == 100


def slices_are_of_one_gpu_while_one_has_room():
    with node("--gpus", "2") as world, Kubelet(world.folder) as kubelet:
        devices = sorted(listed(kubelet, lambda d: len(d) == 200, "200 slices"))
        first, second = of_gpus(devices)
        chosen = kubelet.prefer(devices[30:], [], 60)  # 70 of the first one are free
        assert of_gpus(chosen) == [second] and len(set(chosen)) == 60, chosen
        chosen = kubelet.prefer(devices, devices[:1], 60)
        assert of_gpus(chosen) == [first] and devices[0] in chosen, chosen


def a_pod_has_the_gpu_that_the_scheduler_chose():
    with Cluster() as cluster:
        cluster.node("n1", gpus=2)
        options = ["--node-name", "n1", *cluster.where()]
        with node("--gpus", "2", plugin_options=options) as world, Kubelet(world.folder) as kubelet:
            devices = listed(kubelet, lambda d: len(d) == 200, "200 slices")
            gpus = list(dict.fromkeys(name.split(":")[0] for name in devices))
            for number in (0, 1, 0, 1):
                cluster.pod(f"p{number}", 40, spec={"nodeName": "n1"}, metadata={"annotations": {
                    "tandem.dev/gpu-index": str(number), "tandem.dev/epoch": "1"}})
                chosen = kubelet.prefer(sorted(devices), [], 40)
                assert of_gpus(chosen) == [gpus[number]] and len(set(chosen)) == 40, chosen
            cluster.away = True  # without an answer it is the GPU with most room
            assert len(kubelet.prefer(sorted(devices)[30:], [], 40)) == 40


def a_container_has_its_share_of_memory():
    with node() as world, Kubelet(world.folder) as kubelet:
        names = sorted(listed(kubelet, bool, "a list"))
        (variables, mounts, cdi), = kubelet.allocate(names[:40])
        assert variables["TANDEM_MEM"] == "40%" and variables["TANDEM_WEIGHT"] == "40", variables
        assert variables["NVIDIA_VISIBLE_DEVICES"] == of_gpus(names)[0] and not cdi, variables
        assert mounts["/opt/tandem"] == (os.path.dirname(LIBRARY), [1]), mounts
        assert mounts["/run/tandem"][0] == os.path.dirname(world.environment["TANDEM_SOCKET"])
        inside = world.environment_in(variables)
        out, err = world.start(TRAIN, *SMALL, **inside).communicate(timeout=DEADLINE_S)
        assert '"checksum_ok": true' in out, (out, err)
        process = world.start(TRAIN, *LARGE, **inside)
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode and "memory" in err.lower(), (out, err)


def two_containers_are_two_jobs_with_their_limits():
    with node() as world, Kubelet(world.folder) as kubelet:
        names = sorted(listed(kubelet, bool, "a list"))
        given = kubelet.allocate(names[:30], names[30:80])
        processes = [world.start(TRAIN, "--size", "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps",
                                 "100000", **world.environment_in(variables))
                     for variables, _, _ in given]
        until(lambda: len(world.jobs()) == 2, "tandemd sees both")
        assert {row["job"] for row in world.jobs()} == {
            variables["TANDEM_JOB"] for variables, _, _ in given}, world.jobs()
        assert sorted(row["weight"] for row in world.jobs()) == [30, 50], world.jobs()
        for process in processes:
            process.kill()
            process.communicate()


def cdi_names_the_gpus_to_the_runtime():
    options = ["--cdi", "nvidia.com/gpu"]
    with node(plugin_options=options) as world, Kubelet(world.folder) as kubelet:
        names = sorted(listed(kubelet, bool, "a list"))
        (variables, _, cdi), = kubelet.allocate(names[:10])
        assert cdi == [f"nvidia.com/gpu={of_gpus(names)[0]}"], cdi
        assert variables["NVIDIA_VISIBLE_DEVICES"] == "void", variables


def what_cannot_be_given_is_quoted():
    with node() as world, Kubelet(world.folder) as kubelet:
        listed(kubelet, bool, "a list")
        for call, quoted in ((lambda: kubelet.allocate(["GPU-7:01"]), '"GPU-7:01"'),
                             (lambda: kubelet.allocate([]), "no slice"),
                             (lambda: kubelet.prefer(["a"], [], 1), '"a"'),
                             (lambda: kubelet.call("Allocate", b"\xff\xff"), "cannot be read"),
                             (lambda: kubelet.call("Prepare"), "DevicePlugin/Prepare")):
            try:
                call()
            except grpc.RpcError as error:
                assert quoted in error.details(), error
                assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT,
                                        grpc.StatusCode.UNIMPLEMENTED), error
            else:
                raise AssertionError(quoted)
        assert world.plugin.poll() is None


def a_lost_gpu_and_a_daemon_that_is_gone_are_unhealthy():
    with node("--gpus", "2") as world, Kubelet(world.folder) as kubelet:
        with kubelet.channel() as channel:
            lists = kubelet.watch(channel)

            def follow(condition):
                return next(devices for devices in lists if condition(devices))

            def healthy(devices):
                return {name.split(":")[0] for name, is_ in devices.items() if is_ == "Healthy"}

            follow(lambda d: len(healthy(d)) == 2)
            assert not world.call(SOFTGPU, "fault", "--gpu", "1", "lost").returncode
            world.start(TANDEM, "run", "--", TRAIN, *SMALL).communicate(timeout=DEADLINE_S)
            # A list in which none is healthy may come between: the daemon may be asked in vain.
            follow(lambda d: len(healthy(d)) == 1)
            world.call(TANDEM, "stop", "--force")
            follow(lambda d: d and not healthy(d))
            world.begin_daemon()
            follow(lambda d: len(healthy(d)) == 1)


def it_goes_with_sigterm_and_takes_its_socket_along():
    with node() as world:
        world.plugin.send_signal(signal.SIGTERM)
        assert world.plugin.wait(timeout=DEADLINE_S) == 0
        assert not os.path.exists(f"{world.folder}/tandem.sock")


def one_that_was_killed_starts_again():
    with node() as world, Kubelet(world.folder) as kubelet:
        assert kubelet.arrived.wait(DEADLINE_S)
        kubelet.arrived.clear()
        world.plugin.kill()
        world.plugin.wait()
        world.begin_plugin()
        assert kubelet.arrived.wait(DEADLINE_S)
        assert len(listed(kubelet, bool, "a list")) == 100


def bad_options_are_quoted():
    for options, quoted in (
            ([], "--library is missing"), (["--library", "/none"], '"/none"'),
            (["--library", os.path.dirname(LIBRARY), "--kubelet-dir", "/none"], "/none"),
            (["--library", os.path.dirname(LIBRARY), "--resource", "gpu"], '"gpu"'),
            (["--library", os.path.dirname(LIBRARY), "--cdi", "a/b/c"], '"a/b/c"'),
            (["--library", os.path.dirname(LIBRARY), "--period", "1y"], "1y"), (["x"], '"x"'),
            (["--what"], "--what")):
        if not os.path.exists(PLUGIN):
            raise Skip("tandem-device-plugin was not built")
        done = subprocess.run([PLUGIN, *options], capture_output=True, text=True,
                              timeout=DEADLINE_S)
        assert done.returncode == 125 and quoted in done.stderr, done


# -- raw HTTP/2 --

def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def literal(name, value):
    """A header that is in no table and not compressed."""
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def an_old_kubelet_sends_the_socket_as_the_authority():
    with node() as world:
        path = f"{world.folder}/tandem.sock"
        headers = b"".join(literal(*pair) for pair in (
            (":method", "POST"), (":scheme", "http"),
            (":path", "/v1beta1.DevicePlugin/GetDevicePluginOptions"), (":authority", path[-90:]),
            ("content-type", "application/grpc"), ("te", "trailers")))
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE_S)
            s.connect(path)
            s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
                      + frame(1, 4, 1, headers) + frame(0, 1, 1, b"\0\0\0\0\0"))
            come = b""
            # Two headers, the data between them, and the last one ends the stream.
            while not any(kind == 1 and flags & 1 for kind, flags, _ in frames(come)):
                part = s.recv(4096)
                assert part, come
                come += part
        data = b"".join(payload for kind, _, payload in frames(come) if kind == 0)
        assert data == b"\0\0\0\0\2\x10\x01", data


def frames(data):
    found = []
    while len(data) >= 9:
        length = int.from_bytes(data[:3], "big")
        if len(data) < 9 + length:
            break
        found.append((data[3], data[4], data[9:9 + length]))
        data = data[9 + length:]
    return found


def garbage_and_many_connections_harm_nobody():
    with node() as world, Kubelet(world.folder) as kubelet:
        listed(kubelet, bool, "a list")
        path, held = f"{world.folder}/tandem.sock", []
        for text in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 10000,
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 5000):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                s.sendall(text)
        for _ in range(40):
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            held.append(s)
        # Who asks nothing makes room for a kubelet.
        assert len(listed(kubelet, bool, "a list")) == 100
        for s in held:
            s.close()
        assert len(listed(kubelet, bool, "a list")) == 100
        assert world.plugin.poll() is None


def the_newest_of_many_watchers_has_the_list():
    with node() as world, Kubelet(world.folder) as kubelet:
        listed(kubelet, bool, "a list")
        channels = [grpc.insecure_channel(f"unix:{world.folder}/tandem.sock",
                                          options=[("grpc.use_local_subchannel_pool", 1)])
                    for _ in range(4)]
        lists = [kubelet.watch(channel) for channel in channels for _ in range(12)]
        for devices in lists:
            assert len(next(devices)) == 100
        for channel in channels:
            channel.close()


run_cases([it_registers_and_offers_each_gpu_in_hundredths,
           a_kubelet_that_wants_the_list_first_has_it, a_kubelet_that_refuses_is_asked_again,
           a_kubelet_that_starts_again_is_told_again, another_plugins_socket_is_no_new_kubelet,
           a_kubelet_that_lost_the_list_is_told_again,
           slices_are_of_one_gpu_while_one_has_room,
           a_pod_has_the_gpu_that_the_scheduler_chose, a_container_has_its_share_of_memory,
           two_containers_are_two_jobs_with_their_limits, cdi_names_the_gpus_to_the_runtime,
           what_cannot_be_given_is_quoted, a_lost_gpu_and_a_daemon_that_is_gone_are_unhealthy,
           it_goes_with_sigterm_and_takes_its_socket_along, one_that_was_killed_starts_again,
           bad_options_are_quoted, an_old_kubelet_sends_the_socket_as_the_authority,
           garbage_and_many_connections_harm_nobody,
           the_newest_of_many_watchers_has_the_list], at_once=3)
