/*
 * Best-effort work for a demonstration: kernels of one length on some of the SMs, with gaps in
 * which the host works. Two kernels are in flight, as in training. They may come in bursts, with
 * idle phases between, as in a notebook.
 *
 * The work that has ended is counted in a file, over all runs of the program: a job that is evicted
 * and started again adds to what it had done before.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "include/tandem/tandem.h"
#include "occupy/occupy.h"
#include "occupy/stream.h"

#define EXIT_USAGE 2
#define IN_FLIGHT  2
#define SMS_MAX    1024

CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuGetErrorName(CUresult error, const char **name);

struct beside {
	uint64_t kernel_ns, gap_ns, for_ns, sms, bytes, bandwidth, step, kernels, idle_ns, burst;
	struct stream_kernel stream; /* bandwidth > 0 */
	const char *count;
};

/* In the file. */
struct done {
	_Atomic uint64_t kernels, starts;
};

static const char usage[] =
	"usage: beside [--kernel TIME] [--sms N] [--gap TIME] [--memory SIZE] [--for TIME]\n"
	"              [--kernels N] [--count FILE] [--bandwidth RATE] [--step N]\n"
	"              [--idle TIME] [--burst N]\n"
	"Runs kernels of that length on N SMs, one after the other, with a gap before each.\n"
	"  --kernel TIME (10ms)  --sms N (40)  --gap TIME (0)  --memory SIZE (1Mi)\n"
	"  --for TIME    how long (10s)\n"
	"  --kernels N   that many, if that takes less time (0: no bound)\n"
	"  --count FILE  two 64-bit numbers: kernels that have ended, and starts of the program\n"
	"  --bandwidth RATE  bytes a second that a kernel takes, such as 500g (0)\n"
	"  --step N      tells tandem that a step has ended after each N kernels (0: none)\n"
	"  --idle TIME   the host does nothing for so long before each burst (0)\n"
	"  --burst N     kernels of a burst (1)\n";

enum {
	OPTION_KERNEL = 256,
	OPTION_SMS,
	OPTION_GAP,
	OPTION_MEMORY,
	OPTION_FOR,
	OPTION_KERNELS,
	OPTION_COUNT,
	OPTION_BANDWIDTH,
	OPTION_STEP,
	OPTION_IDLE,
	OPTION_BURST
};

static const struct option options[] = {
	{"kernel", required_argument, NULL, OPTION_KERNEL},
	{"sms", required_argument, NULL, OPTION_SMS},
	{"gap", required_argument, NULL, OPTION_GAP},
	{"memory", required_argument, NULL, OPTION_MEMORY},
	{"for", required_argument, NULL, OPTION_FOR},
	{"kernels", required_argument, NULL, OPTION_KERNELS},
	{"count", required_argument, NULL, OPTION_COUNT},
	{"bandwidth", required_argument, NULL, OPTION_BANDWIDTH},
	{"step", required_argument, NULL, OPTION_STEP},
	{"idle", required_argument, NULL, OPTION_IDLE},
	{"burst", required_argument, NULL, OPTION_BURST},
	{0},
};

static int take_option(struct beside *b, int c, struct td_err *err)
{
	switch (c) {
	case OPTION_KERNEL: return td_parse_duration(optarg, &b->kernel_ns, err);
	case OPTION_SMS: return td_parse_u64(optarg, 1, SMS_MAX, &b->sms, err);
	case OPTION_GAP: return td_parse_duration(optarg, &b->gap_ns, err);
	case OPTION_MEMORY: return td_parse_size(optarg, 0, &b->bytes, err);
	case OPTION_BANDWIDTH: return td_parse_size(optarg, 0, &b->bandwidth, err);
	case OPTION_STEP: return td_parse_u64(optarg, 0, 1000000, &b->step, err);
	case OPTION_FOR: return td_parse_duration(optarg, &b->for_ns, err);
	case OPTION_IDLE: return td_parse_duration(optarg, &b->idle_ns, err);
	case OPTION_BURST: return td_parse_u64(optarg, 1, UINT64_MAX, &b->burst, err);
	case OPTION_KERNELS: return td_parse_u64(optarg, 0, UINT64_MAX, &b->kernels, err);
	default: b->count = optarg; return 0;
	}
}

static int parse(struct beside *b, int argc, char **argv, struct td_err *err)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == ':' || c == '?')
			return td_refuse_option(c, argv, options, "beside --help", err);
		if (td_check_optarg(argv, err) || take_option(b, c, err))
			return -EINVAL;
	}
	if (optind < argc)
		return td_err_set(err, -EINVAL, "\"%.64s\" is not an option: see beside --help",
			argv[optind]);
	return 0;
}

static void must(CUresult r, const char *what)
{
	const char *name = NULL;

	if (!r)
		return;
	(void)cuGetErrorName(r, &name);
	fprintf(stderr, "beside: %s: %s (%d)\n", what, name ? name : "?", r);
	exit(1);
}

static struct done *map(const char *path)
{
	static struct done own;
	void *at;
	int fd;

	if (!path)
		return &own;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(own)) < 0)
		goto err;
	at = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		return at;
err:
	fprintf(stderr, "beside: --count: %s: %s\n", path, strerror(errno));
	exit(1);
}

static CUfunction begin(struct beside *b, CUevent *events)
{
	CUcontext context;
	CUdevice device;
	CUfunction function;
	CUdeviceptr memory;

	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "device");
	must(cuDevicePrimaryCtxRetain(&context, device), "context");
	must(cuCtxSetCurrent(context), "context");
	must(occupy_load(&function), "module");
	if (b->bandwidth)
		must(stream_load(&b->stream), "stream");
	if (b->bytes)
		must(cuMemAlloc_v2(&memory, b->bytes), "allocate");
	for (unsigned i = 0; i < IN_FLIGHT; i++)
		must(cuEventCreate(&events[i], 0), "event");
	return function;
}

static CUresult start(const struct beside *b, CUfunction function)
{
	unsigned sms = (unsigned)b->sms;

	if (b->bandwidth)
		return stream_start(&b->stream, sms, b->kernel_ns, b->bandwidth);
	return occupy_start(function, sms, b->kernel_ns);
}

static void work(struct beside *b, struct done *done)
{
	CUevent events[IN_FLIGHT];
	CUfunction function = begin(b, events);
	uint64_t end_ns = td_time_now_ns() + b->for_ns;

	atomic_fetch_add(&done->starts, 1);
	for (uint64_t i = 0; td_time_now_ns() < end_ns; i++) {
		CUevent event = events[i % IN_FLIGHT];

		if (b->kernels && i == b->kernels)
			break;

		if (i >= IN_FLIGHT) {
			must(cuEventSynchronize(event), "wait");
			atomic_fetch_add(&done->kernels, 1);
			if (b->step && !(i % b->step))
				tandem_step();
		}
		if (b->idle_ns && i % b->burst == 0)
			td_time_sleep_until_ns(td_time_now_ns() + b->idle_ns);
		if (b->gap_ns)
			td_time_sleep_until_ns(td_time_now_ns() + b->gap_ns);
		must(start(b, function), "launch");
		must(cuEventRecord(event, NULL), "record");
	}
}

int main(int argc, char **argv)
{
	struct beside b = {.kernel_ns = 10 * TD_NS_PER_MS,
		.for_ns = 10 * TD_NS_PER_S,
		.sms = 40,
		.burst = 1,
		.bytes = 1 << 20};
	struct td_err err = {0};
	struct done *done;

	if (argc > 1 && td_asks_help(argv[1])) {
		fputs(usage, stdout);
		return 0;
	}
	if (parse(&b, argc, argv, &err)) {
		fprintf(stderr, "beside: %s\n", err.msg);
		return EXIT_USAGE;
	}
	done = map(b.count);
	work(&b, done);
	printf("{\"kernels\": %llu, \"starts\": %llu}\n", (unsigned long long)done->kernels,
		(unsigned long long)done->starts);
	return 0;
}
