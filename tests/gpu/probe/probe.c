/* See probe.h. */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROW_BYTES (256 * 1024)

struct probe_cuda cu;
bool probe_quick;

static char figures[ROW_BYTES], gpu_name[128] = "";
static size_t figures_len;
static int driver_version;
static bool in_child;
static const char *program;
static char *ptx;

/* -- text -- */

static void escape(const char *text, char *ret, size_t len)
{
	size_t n = 0;

	for (; *text && n + 8 < len; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			ret[n++] = '\\';
		if (c < ' ')
			n += (size_t)snprintf(ret + n, len - n, "\\u%04x", c);
		else
			ret[n++] = (char)c;
	}
	ret[n] = '\0';
}

void probe_answer(const char *format, ...)
{
	char text[8192], answer[16384], question[1024], gpu[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	escape(text, answer, sizeof(answer));
	escape(probe_question, question, sizeof(question));
	escape(gpu_name, gpu, sizeof(gpu));
	printf("{\"name\": \"%s\", \"question\": \"%s\", \"answer\": \"%s\", \"figures\": [%s], "
	       "\"driver\": %d, \"gpu\": \"%s\", \"software\": %s}\n",
		probe_name, question, answer, figures, driver_version, gpu,
		probe_is_software() ? "true" : "false");
	fflush(stdout);
	_exit(0);
}

const char *probe_error(CUresult r)
{
	static char number[32];
	const char *name = NULL;

	if (cu.cuGetErrorName && !cu.cuGetErrorName(r, (void *)&name) && name)
		return name;
	snprintf(number, sizeof(number), "error %d", r);
	return number;
}

void probe_must(CUresult r, const char *call)
{
	if (!r)
		return;
	if (in_child) {
		probe_say("failed %s %s", call, probe_error(r));
		_exit(3);
	}
	probe_answer("not supported by this driver: %s: %s", call, probe_error(r));
}

/* -- figures -- */

void probe_add(struct probe_series *series, double value)
{
	if (series->n < PROBE_SAMPLES && !isnan(value))
		series->values[series->n++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double probe_median(struct probe_series *series)
{
	if (!series->n)
		return NAN;
	qsort(series->values, series->n, sizeof(double), compare);
	return series->values[series->n / 2];
}

static void add_row(
	const char *name, const char *unit, double median, double p5, double p95, size_t n)
{
	char safe[256];

	escape(name, safe, sizeof(safe));
	if (figures_len + 512 > sizeof(figures))
		return;
	figures_len += (size_t)snprintf(figures + figures_len, sizeof(figures) - figures_len,
		"%s{\"name\": \"%s\", \"median\": %.6g, \"p5\": %.6g, \"p95\": %.6g, \"n\": %zu, "
		"\"unit\": \"%s\"}",
		figures_len ? ", " : "", safe, median, p5, p95, n, unit);
}

void probe_figure(struct probe_series *series, const char *unit, const char *format, ...)
{
	char name[200];
	va_list args;
	size_t n = series->n;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	if (n) {
		double median = probe_median(series);

		add_row(name, unit, median, series->values[n / 20], series->values[n - 1 - n / 20],
			n);
	}
	series->n = 0;
}

void probe_value(double value, const char *unit, const char *format, ...)
{
	char name[200];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	if (!isnan(value) && !isinf(value))
		add_row(name, unit, value, value, value, 1);
}

/* -- time -- */

uint64_t probe_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

double probe_us_since(uint64_t began_ns)
{
	return (double)(probe_now_ns() - began_ns) / 1e3;
}

void probe_sleep_ms(unsigned ms)
{
	struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* -- the driver -- */

static CUresult missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static bool load_driver(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (!handle)
		return false;
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	*(void **)&cu.symbol = dlsym(handle, #symbol);                                             \
	if (!cu.symbol)                                                                            \
		*(void **)&cu.symbol = (void *)missing;
#include "cuda/symbols.def"
#undef SYMBOL
	return true;
}

static char *read_ptx(void)
{
	const char *path = getenv("PROBE_PTX");
	int fd = open(path ? path : "kernels.ptx", O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	off_t size;

	if (fd < 0)
		return NULL;
	size = lseek(fd, 0, SEEK_END);
	if (size > 0)
		text = calloc(1, (size_t)size + 1);
	if (text && pread(fd, text, (size_t)size, 0) != size) {
		free(text);
		text = NULL;
	}
	close(fd);
	return text;
}

CUresult probe_begin_quietly(void)
{
	CUcontext context;
	CUresult r;
	int count = 0;

	if (!load_driver())
		return CUDA_ERROR_NO_DEVICE;
	r = cu.cuInit(0);
	if (!r)
		r = cu.cuDeviceGetCount(&count);
	if (!r && !count)
		r = CUDA_ERROR_NO_DEVICE;
	if (!r)
		r = cu.cuDevicePrimaryCtxRetain(&context, 0);
	if (!r)
		r = cu.cuCtxSetCurrent(context);
	if (!r)
		(void)cu.cuDeviceGetName(gpu_name, sizeof(gpu_name), 0);
	if (!r)
		(void)cu.cuDriverGetVersion(&driver_version);
	return r;
}

void probe_begin(void)
{
	CUresult r = probe_begin_quietly();

	if (r && in_child)
		_exit(3);
	if (r)
		probe_answer("no GPU");
}

CUfunction probe_kernel(const char *name)
{
	static CUmodule module;
	CUfunction f;

	if (!module) {
		if (!ptx && !(ptx = read_ptx()))
			probe_answer("the kernels are not there: PROBE_PTX");
		MUST(cuModuleLoadData, &module, ptx);
	}
	MUST(cuModuleGetFunction, &f, module, name);
	return f;
}

CUresult probe_launch(
	CUfunction f, unsigned blocks, unsigned threads, CUstream stream, void **params)
{
	return cu.cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

void probe_spin(CUstream stream, unsigned blocks, uint64_t ns)
{
	unsigned long long length = ns;
	void *params[] = {&length};

	probe_must(
		probe_launch(probe_kernel("spin"), blocks, 32, stream, params), "cuLaunchKernel");
}

bool probe_is_software(void)
{
	return !strncmp(gpu_name, "softgpu", 7);
}

uint64_t probe_free_bytes(void)
{
	size_t free_bytes = 0, total = 0;

	MUST(cuMemGetInfo_v2, &free_bytes, &total);
	return free_bytes;
}

uint64_t probe_within(uint64_t bytes)
{
	uint64_t most = probe_free_bytes() / 4 & ~((2ull << 20) - 1);

	return bytes < most ? bytes : most;
}

int probe_attribute(int attribute)
{
	int value = 0;

	return cu.cuDeviceGetAttribute(&value, attribute, 0) ? -1 : value;
}

/* -- other processes -- */

struct probe_child probe_start(const char *role, const char *extra)
{
	struct probe_child child = {-1, -1, -1};
	int in[2], out[2];

	if (pipe(in) || pipe(out))
		probe_answer("no pipe: %s", strerror(errno));
	fflush(stdout);
	child.pid = fork();
	if (!child.pid) {
		char *const argv[] = {(char *)program, (char *)"--role", (char *)role,
			probe_quick ? (char *)"--quick" : NULL, NULL};

		dup2(in[0], 0);
		dup2(out[1], 1);
		/* Only descriptors above these belong to the test, such as exported memory. */
		close(in[0]), close(in[1]), close(out[0]), close(out[1]);
		if (extra)
			putenv((char *)extra);
		execv(program, argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	child.to = in[1];
	child.from = out[0];
	return child;
}

const char *probe_line(const struct probe_child *child)
{
	static char line[512];
	size_t n = 0;

	while (n + 1 < sizeof(line) && read(child->from, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	return line;
}

double probe_number(const struct probe_child *child)
{
	const char *line = probe_line(child);
	char *end;
	double value = strtod(line, &end);

	return end == line ? NAN : value;
}

void probe_tell(const struct probe_child *child, const char *line)
{
	if (write(child->to, line, strlen(line)) < 0 || write(child->to, "\n", 1) < 0)
		return;
}

int probe_end(struct probe_child *child, unsigned most_ms)
{
	int status = 0;

	if (child->pid <= 0)
		return -1;
	close(child->to);
	for (unsigned waited = 0; waitpid(child->pid, &status, WNOHANG) == 0; waited++) {
		if (waited == most_ms)
			kill(child->pid, SIGKILL);
		probe_sleep_ms(1);
	}
	close(child->from);
	child->pid = -1;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void probe_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void probe_listen(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

/* -- MPS -- */

static char mps_folder[64];

static int mps_control(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "%s >/dev/null 2>&1", command);
	return system(line);
}

bool probe_mps_start(void)
{
	if (mps_control("command -v nvidia-cuda-mps-control"))
		return false;
	snprintf(mps_folder, sizeof(mps_folder), "/tmp/probe-mps-XXXXXX");
	if (!mkdtemp(mps_folder))
		return false;
	/* In this process's environment alone; the card's compute mode stays as it is. */
	setenv("CUDA_MPS_PIPE_DIRECTORY", mps_folder, 1);
	setenv("CUDA_MPS_LOG_DIRECTORY", mps_folder, 1);
	if (mps_control("timeout 10 nvidia-cuda-mps-control -d")) {
		probe_mps_stop();
		return false;
	}
	probe_sleep_ms(500);
	return true;
}

void probe_mps_stop(void)
{
	char remove[128];

	(void)mps_control("echo quit | timeout 10 nvidia-cuda-mps-control");
	snprintf(remove, sizeof(remove), "rm -rf %s", mps_folder);
	(void)mps_control(remove);
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	unsetenv("CUDA_MPS_LOG_DIRECTORY");
}

/* -- NVML -- */

void *probe_nvml(const char *name)
{
	static void *library;
	int (*init)(void);

	if (!library) {
		library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
		if (!library)
			return NULL;
		*(void **)&init = dlsym(library, "nvmlInit_v2");
		if (!init || init()) {
			library = NULL;
			return NULL;
		}
	}
	return dlsym(library, name);
}

void *probe_nvml_device(void)
{
	int (*by_uuid)(const char *uuid, void **ret);
	unsigned char id[16];
	void *device = NULL;
	char uuid[64];
	size_t n;

	*(void **)&by_uuid = probe_nvml("nvmlDeviceGetHandleByUUID");
	if (!by_uuid || cu.cuDeviceGetUuid((void *)id, 0))
		return NULL;
	n = (size_t)snprintf(uuid, sizeof(uuid), "GPU-");
	for (unsigned i = 0; i < 16; i++)
		n += (size_t)snprintf(uuid + n, sizeof(uuid) - n, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	return by_uuid(uuid, &device) ? NULL : device;
}

/* -- */

int main(int argc, char **argv)
{
	const char *role = NULL;

	program = "/proc/self/exe";
	signal(SIGPIPE, SIG_IGN);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick")) {
			probe_quick = true;
		} else if (!strcmp(argv[i], "--role") && i + 1 < argc) {
			role = argv[++i];
		} else if (!strcmp(argv[i], "--question")) {
			puts(probe_question);
			return 0;
		} else {
			fprintf(stderr,
				"%s: \"%s\" is not an option: expected --quick or --question\n",
				probe_name, argv[i]);
			return 2;
		}
	}
	if (role) {
		in_child = true;
		return probe_role(role);
	}
	probe_run();
	probe_answer("no answer");
}
