/*
 * Question 24: the assumption of `tandem run --gpu`. A child has the driver loaded, points
 * `environ` to an array with CUDA_VISIBLE_DEVICES during cuInit, and reports its GPUs; then it
 * restores the old array and asks again.
 */
#include "probe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRIES 4096

const char probe_name[] = "visible";
const char probe_question[] = "Does the driver read CUDA_VISIBLE_DEVICES in cuInit, and never "
			      "again, and does NVML follow it?";

static struct {
	CUresult (*init)(unsigned flags);
	CUresult (*get_count)(int *count);
	CUresult (*get_uuid)(CUuuid *uuid, CUdevice device);
} driver;

static bool load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library)
		return false;
	*(void **)&driver.init = dlsym(library, "cuInit");
	*(void **)&driver.get_count = dlsym(library, "cuDeviceGetCount");
	*(void **)&driver.get_uuid = dlsym(library, "cuDeviceGetUuid");
	return driver.init && driver.get_count && driver.get_uuid;
}

static int count_devices(void)
{
	int count = 0;

	return driver.get_count(&count) ? -1 : count;
}

static unsigned nvml_count(void)
{
	int (*get_count)(unsigned *count);
	unsigned count = 0;

	*(void **)&get_count = probe_nvml("nvmlDeviceGetCount_v2");
	return get_count && !get_count(&count) ? count : 0;
}

/* PROBE_VISIBLE as CUDA_VISIBLE_DEVICES, for the time of cuInit. */
static CUresult init_with(const char *visible)
{
	static char entry[256], *copy[ENTRIES];
	char **before = environ;
	unsigned n = 0;
	CUresult r;

	for (char **at = before; *at && n + 2 < ENTRIES; at++)
		if (strncmp(*at, "CUDA_VISIBLE_DEVICES=", 21))
			copy[n++] = *at;
	snprintf(entry, sizeof(entry), "CUDA_VISIBLE_DEVICES=%s", visible);
	copy[n] = entry;
	environ = copy;
	r = driver.init(0);
	environ = before;
	return r;
}

int probe_role(const char *role)
{
	const char *visible = getenv("PROBE_VISIBLE");
	CUresult r;

	if (strcmp(role, "looker") || !visible || !load())
		return 2;
	r = init_with(visible);
	unsetenv("CUDA_VISIBLE_DEVICES");
	probe_say("%d", (int)r);
	probe_say("%d", r ? -1 : count_devices());
	probe_say("%u", nvml_count());
	return 0;
}

static void look(const char *what, const char *visible, double *ret_init, double *ret_count)
{
	char extra[256];
	struct probe_child child;

	snprintf(extra, sizeof(extra), "PROBE_VISIBLE=%s", visible);
	child = probe_start("looker", extra);
	*ret_init = probe_number(&child);
	*ret_count = probe_number(&child);
	probe_value(*ret_init, "CUresult", "cuInit with %s", what);
	probe_value(*ret_count, "GPUs", "seen with %s", what);
	probe_value(probe_number(&child), "GPUs", "NVML's count with %s", what);
	(void)probe_end(&child, 10000);
}

void probe_run(void)
{
	unsigned char id[16];
	double init, count, none_init, none_count, late;
	char uuid[64];
	size_t n;

	probe_begin();
	if (!load())
		probe_answer("cuInit cannot be looked up");
	probe_must(driver.get_uuid((CUuuid *)id, 0), "cuDeviceGetUuid");
	n = (size_t)snprintf(uuid, sizeof(uuid), "GPU-");
	for (unsigned i = 0; i < 16; i++)
		n += (size_t)snprintf(uuid + n, sizeof(uuid) - n, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	probe_value(count_devices(), "GPUs", "seen without the variable");
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	late = count_devices();
	unsetenv("CUDA_VISIBLE_DEVICES");
	probe_value(late, "GPUs", "seen once it is set to nothing after cuInit");
	look("the whole UUID of one", uuid, &init, &count);
	look("nothing", "", &none_init, &none_count);
	if (init || count < 1 || count > 1)
		probe_answer("no: with one GPU's UUID in `environ` for the time of cuInit it sees "
			     "%g, cuInit says %g",
			count, init);
	if (!none_init)
		probe_answer("no: with an empty list it sees %g", none_count);
	probe_answer("yes, from `environ` as it is then%s",
		late < 1 ? "; but it reads it again later" : "");
}
