/*
 * tandem doctor: checks whether sharing works here. Prints one line per check; the exit status is 1
 * if a check failed.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/mps.h"
#include "cuda/movable.h"
#include "proto/socket.h"

struct report {
	struct td_json json;
	bool as_json, softgpu; /* softgpu: the driver is in software */
	bool has_daemon;       /* a daemon answers */
	unsigned failed;
};

static void report_check(struct report *report, const char *check, bool ok, const char *text)
{
	report->failed += !ok;
	if (report->as_json) {
		td_json_row(&report->json);
		td_json_str(&report->json, "check", check);
		td_json_str(&report->json, "result", ok ? "ok" : "failed");
		td_json_str(&report->json, "text", text);
		td_json_end_row(&report->json);
	} else {
		printf("%-8s %-10s %s\n", ok ? "ok" : "FAILED", check, text);
	}
}

/*
 * Returns whether the function belongs to softgpu. The path of its library tells that, so the
 * driver need not be initialised.
 */
static bool is_softgpu(void *function)
{
	Dl_info info;

	return dladdr(function, &info) && info.dli_fname && strstr(info.dli_fname, "/softgpu/");
}

static void check_driver(struct report *report)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	int (*get_version)(int *), version = 0;
	char text[128];

	if (!handle) {
		report_check(report, "driver", false,
			"libcuda.so.1 is not found: no NVIDIA driver here (softgpu run -- ... "
			"brings its own)");
		return;
	}
	*(void **)&get_version = dlsym(handle, "cuDriverGetVersion");
	if (get_version && !get_version(&version)) {
		report->softgpu = is_softgpu((void *)get_version);
		snprintf(text, sizeof(text), "CUDA %d.%d%s", version / 1000, version % 1000 / 10,
			report->softgpu ? ", softgpu's: its GPUs are software" : "");
		report_check(report, "driver", true, text);
	} else {
		report_check(
			report, "driver", false, "libcuda.so.1 does not answer cuDriverGetVersion");
	}
	dlclose(handle);
}

/* Reports which backend `auto` would choose. */
static void check_memory(struct report *report)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	int (*init)(unsigned), (*get_count)(int *), (*get_attribute)(int *, int, int), count = 0;
	char text[160] = "";

	if (!handle)
		return; /* check_driver() has reported that */
	*(void **)&init = dlsym(handle, "cuInit");
	*(void **)&get_count = dlsym(handle, "cuDeviceGetCount");
	*(void **)&get_attribute = dlsym(handle, "cuDeviceGetAttribute");
	if (!init || !get_count || !get_attribute || init(0) || get_count(&count) || !count)
		snprintf(text, sizeof(text), "no GPU is to be seen");
	for (int i = 0; i < count && !*text; i++)
		if (!td_is_movable(get_attribute, i))
			snprintf(text, sizeof(text),
				"backend auto keeps memory where it is (plain) for programs that "
				"see GPU %d, which lacks the calls by which memory is moved",
				i);
	if (!*text)
		snprintf(text, sizeof(text),
			"backend auto is swap: memory leaves the GPU between turns, unless a "
			"program has a device open that gives it to other hardware");
	report_check(report, "memory", true, text);
}

static void check_library(struct report *report)
{
	static const char *const candidates[] = {"../lib/libtandem.so", "../preload/libtandem.so",
		"../" TD_LIBDIR "/libtandem.so", NULL};
	char path[PATH_MAX], why[PATH_MAX + 256];
	void *handle;

	if (!td_cli_find(path, sizeof(path), "TANDEM_LIB", candidates)) {
		report_check(report, "library", false,
			"libtandem.so is not found beside tandem: set TANDEM_LIB");
		return;
	}
	if (!td_cli_is_library(path, why, sizeof(why))) {
		report_check(report, "library", false, why);
		return;
	}
	setenv("TANDEM_DISABLE", "1", 1);
	handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	report_check(report, "library", handle != NULL, handle ? path : dlerror());
}

static void check_daemon(struct report *report)
{
	char path[256], text[TD_CLI_WHY];
	struct td_err err = {0};
	int fd, r;

	if (td_socket_path_typed(path, sizeof(path), &err)) {
		report_check(report, "daemon", false, err.msg);
		return;
	}
	fd = td_cli_connect(path);
	r = fd < 0 ? fd : td_cli_probe(fd);
	if (td_cli_is_mute(r))
		(void)td_cli_why_mute(text, sizeof(text), path, fd, r);
	else if (r < 0)
		snprintf(text, sizeof(text), "none at %s: tandem run starts one", path);
	else
		snprintf(text, sizeof(text), "answers at %s", path);
	report_check(report, "daemon", !td_cli_is_mute(r), text);
	report->has_daemon = fd >= 0 && !td_cli_is_mute(r) && r >= 0;
	if (fd >= 0)
		close(fd);
}

static void say_foreign(void *arg, const char *text)
{
	report_check(arg, "locks", true, text);
}

/*
 * Reports GPUs that another daemon shares out. This daemon's programs are not shared there: they
 * run as without tandem.
 */
static void check_locks(struct report *report)
{
	char text[128];
	int r = td_cli_foreign_gpus(say_foreign, report);

	if (r < 0) {
		snprintf(text, sizeof(text),
			"no directory for the lock files, by which each GPU belongs to one daemon: "
			"%s",
			strerror(-r));
		report_check(report, "locks", false, text);
	}
}

/*
 * Reports whether the kernel provides PSI. Its file may exist but not be readable, as without
 * psi=1.
 */
static void check_pressure(struct report *report)
{
	int fd = open("/proc/pressure/memory", O_RDONLY | O_CLOEXEC);
	char byte;
	bool has = fd >= 0 && read(fd, &byte, 1) == 1;

	if (fd >= 0)
		close(fd);
	report_check(report, "pressure", true,
		has ? "the kernel reports memory pressure, so the option memory.pressure can evict "
		      "besteffort jobs"
		    : "the kernel does not report memory pressure (that needs CONFIG_PSI and the "
		      "boot option psi=1), so the option memory.pressure evicts no job");
}

static void say_cpus(const struct td_msg *msg, void *arg)
{
	struct report *report = arg;
	char text[2 * TD_STR_MAX + 64];

	if (msg->type != TD_MSG_TYPE_option || !strcmp(msg->option.value, "none"))
		return;
	if (*msg->option.why_not)
		snprintf(text, sizeof(text), "besteffort.cpus=%s: %s", msg->option.value,
			msg->option.why_not);
	else
		snprintf(text, sizeof(text), "besteffort jobs run on CPUs %s", msg->option.value);
	report_check(report, "cpus", !*msg->option.why_not, text);
}

/* Reports whether besteffort.cpus works. Without a daemon there is no such option. */
static void check_cpus(struct report *report)
{
	struct td_msg get = {.type = TD_MSG_TYPE_get};

	strcpy(get.get.key, "besteffort.cpus");
	if (report->has_daemon)
		(void)td_cli_ask(&get, say_cpus, report);
}

static void say_mps(void *arg, bool ok, const char *text)
{
	report_check(arg, "mps", ok, text);
}

/*
 * Reports an environment variable of tandem with an invalid value. `tandem run` refuses to start
 * then. A program that loads libtandem.so by other means ignores the variable.
 */
static bool say_variable(void *arg, const char *name, const struct td_err *err)
{
	char text[TD_ERR_MSG_MAX + 64];

	snprintf(text, sizeof(text), "%s: %s; it counts as not set", name, err->msg);
	report_check(arg, "setting", false, text);
	return true;
}

static void check_environment(struct report *report)
{
	static const char *const watched[] = {"CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY",
		"NVIDIA_GPU_MEMORY_LIMIT", "LD_AUDIT", NULL};
	char text[320];

	for (const char *const *name = watched; *name; name++) {
		const char *value = getenv(*name);

		if (!value)
			continue;
		snprintf(text, sizeof(text), "%s=%.200s is set and left as it is", *name, value);
		report_check(report, "setting", true, text);
	}
	(void)td_cli_check_variables(say_variable, report);
	snprintf(text, sizeof(text), "glibc %s", gnu_get_libc_version());
	report_check(report, "libc", true, text);
}

/* Returns whether the program gets more rights than its caller, by its mode or by capabilities. */
static bool raises_rights(int fd)
{
	struct stat st;

	return (!fstat(fd, &st) && st.st_mode & (S_ISUID | S_ISGID)) ||
	       fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/*
 * Returns why libtandem.so cannot be loaded into the program, or why the program cannot run on this
 * driver; or NULL.
 */
static const char *why_not(const struct report *report, int fd, const Elf64_Ehdr *header)
{
	if (!td_cli_is_for_this_machine(header))
		return "built for another kind of processor than libtandem.so, which cannot be "
		       "loaded into it";
	if (!td_cli_has_interpreter(fd, header))
		return "static, tandem cannot reach it";
	if (raises_rights(fd))
		return "setuid or with capabilities: the system loads no LD_PRELOAD into it";
	if (report->softgpu && td_cli_has_static_cudart(fd, header))
		return "has NVIDIA's CUDA runtime in it, which runs on NVIDIA's driver alone; for "
		       "softgpu "
		       "build it with nvcc -cudart shared";
	return NULL;
}

/*
 * Reads the path of a script's interpreter: "#!/usr/bin/python3 -s" yields "/usr/bin/python3".
 * Returns false if the file is not a script.
 */
static bool read_interpreter(int fd, char *ret, size_t size)
{
	ssize_t n = pread(fd, ret, size - 1, 0);
	size_t skip;

	if (n < 3 || ret[0] != '#' || ret[1] != '!')
		return false;
	ret[n] = '\0';
	skip = 2 + strspn(ret + 2, " \t");
	memmove(ret, ret + skip, (size_t)n + 1 - skip);
	ret[strcspn(ret, " \t\n")] = '\0';
	return true;
}

/* Checks a script's interpreter. One that is itself a script is not followed. */
static void check_interpreter(struct report *report, const char *path)
{
	Elf64_Ehdr header;
	const char *why = NULL;
	char text[512];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		why = strerror(errno);
	else if (td_cli_read_elf(fd, &header))
		why = why_not(report, fd, &header);
	snprintf(text, sizeof(text), "%.200s: %s", path, why ? why : "dynamically linked");
	report_check(report, "program", !why, text);
	if (fd >= 0)
		close(fd);
}

static void check_program(struct report *report, const char *path)
{
	char text[512], interpreter[256];
	Elf64_Ehdr header;
	const char *why;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		snprintf(text, sizeof(text), "%.200s: %s", path, strerror(errno));
		report_check(report, "program", false, text);
		return;
	}
	if (td_cli_read_elf(fd, &header)) {
		why = why_not(report, fd, &header);
		snprintf(text, sizeof(text), "%.200s: %s", path, why ? why : "dynamically linked");
		report_check(report, "program", !why, text);
	} else if (read_interpreter(fd, interpreter, sizeof(interpreter))) {
		snprintf(text, sizeof(text), "%.200s: a script, run by %.200s", path, interpreter);
		report_check(report, "program", true, text);
		check_interpreter(report, interpreter);
	} else {
		snprintf(text, sizeof(text), "%.200s: neither an ELF program nor a script", path);
		report_check(report, "program", false, text);
	}
	close(fd);
}

int td_verb_doctor(int argc, char **argv)
{
	struct report report = {0};
	int at = td_cli_json_option(argc, argv, &report.as_json);

	if (at < 0)
		return TD_EXIT_USAGE;
	if (report.as_json)
		td_json_begin(&report.json, stdout);
	check_driver(&report);
	check_memory(&report);
	check_library(&report);
	check_daemon(&report);
	check_locks(&report);
	td_cli_check_mps(say_mps, &report);
	check_pressure(&report);
	check_cpus(&report);
	check_environment(&report);
	for (; at < argc; at++)
		check_program(&report, argv[at]);
	if (report.as_json)
		td_json_end(&report.json);
	return report.failed ? 1 : 0;
}
