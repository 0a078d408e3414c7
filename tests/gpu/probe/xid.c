/* Question 20: can a process see the Xid that another one causes? */
#include "probe.h"

#include <fcntl.h>
#include <unistd.h>

const char probe_name[] = "xid";
const char probe_question[] = "Is an Xid seen by NVML's events, and is the kernel's log readable?";

enum { XID_EVENTS = 8 };

struct event {
	void *device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};

int probe_role(const char *role)
{
	CUdeviceptr at;
	void *params[] = {&at};

	(void)role;
	probe_begin();
	MUST(cuMemAddressReserve, &at, 2u << 20, 0, 0, 0);
	(void)probe_launch(probe_kernel("poke"), 1, 1, NULL, params);
	probe_say("%s", probe_error(cu.cuCtxSynchronize()));
	return 0;
}

void probe_run(void)
{
	int (*create)(void **), (*reg)(void *, unsigned long long, void *),
		(*wait)(void *, struct event *, unsigned);
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK), r;
	struct event event = {0};
	struct probe_child child;
	void *device, *set;
	uint64_t t;

	probe_begin();
	device = probe_nvml_device();
	*(void **)&create = probe_nvml("nvmlEventSetCreate");
	*(void **)&reg = probe_nvml("nvmlDeviceRegisterEvents");
	*(void **)&wait = probe_nvml("nvmlEventSetWait_v2");
	if (!device || !create || !reg || !wait)
		probe_answer("NVML has no events here; the kernel's log is %s",
			log < 0 ? "not readable" : "readable");
	r = create(&set);
	if (!r)
		r = reg(device, XID_EVENTS, set);
	if (r)
		probe_answer("NVML refuses to register for Xid events: %d; the kernel's log is %s",
			r, log < 0 ? "not readable" : "readable");
	child = probe_start("culprit", NULL);
	(void)probe_line(&child);
	t = probe_now_ns();
	r = wait(set, &event, probe_quick ? 100 : 5000);
	(void)probe_end(&child, 5000);
	if (!r)
		probe_value(
			probe_us_since(t) / 1e3, "ms", "from the culprit's error until the event");
	probe_answer(
		"an illegal access of another process is %s (Xid %llu); the kernel's log is %s",
		r ? "not seen" : "seen", event.data, log < 0 ? "not readable" : "readable");
}
