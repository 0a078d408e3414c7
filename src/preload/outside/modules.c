/*
 * The memory of modules' variables. It is asked for before a module is loaded, as far as its image
 * tells the size (image.h). The first modules, up to TD_LITTLE_BYTES in all, count as code does,
 * which NVML's figures include (docs/decisions/0007). So a program that has used up its limit can
 * still load kernels.
 *
 * Compressed entries of an image are unpacked if the job has a limit, or if no context tells
 * whether it has. If the size cannot be read and the job has a limit, the module is loaded and
 * measured by the device's free memory before and after. Since others allocate too, two
 * measurements must agree; otherwise the smallest of three counts. A module that does not fit is
 * unloaded again.
 */
#include "preload/outside/modules.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cuda/objects.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/gate/meter.h"
#include "preload/link/client.h"
#include "preload/outside/outside_table.h"

#define LOADS_MOST 3

/*
 * Returns whether to unpack a compressed image to find its variables. It takes as long as the
 * driver's own loading.
 */
static bool is_worth_unpacking(void)
{
	int slot = td_context_use();

	return slot < 0 || td_client_has_limit((unsigned)slot);
}

struct td_image_data td_data_of_image(const void *image)
{
	return td_image_data(image, SIZE_MAX, is_worth_unpacking());
}

/*
 * Returns whether the path names a regular file. This is asked before opening it, since opening a
 * pipe would consume it. It uses the system call, as older versions of glibc do not export stat.
 */
static bool is_file(const char *path, struct stat *ret)
{
	return path && !syscall(SYS_stat, path, ret) && S_ISREG(ret->st_mode) && ret->st_size > 0;
}

/* Returns zeros if the file cannot be read: the driver will return the error. */
struct td_image_data td_data_of_file(const char *path)
{
	struct stat st;
	int fd = is_file(path, &st) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	/*
	 * The file is read, not mapped, as truncating a mapped file would end the program by
	 * SIGBUS.
	 */
	char *image = fd < 0 ? NULL : malloc((size_t)st.st_size);
	struct td_image_data data = {0};
	size_t has = 0;
	ssize_t n = image ? 1 : 0;

	while (n > 0 && has < (size_t)st.st_size) {
		n = read(fd, image + has, (size_t)st.st_size - has);
		has += n > 0 ? (size_t)n : 0;
	}
	if (has)
		data = td_image_data(image, has, is_worth_unpacking());
	free(image);
	if (fd >= 0)
		close(fd);
	return data;
}

/* -- small modules -- */

/*
 * Bytes of small modules that are being loaded and are not recorded yet, so that no two threads use
 * the same room.
 */
static _Atomic uint64_t little_bytes;

/*
 * Returns how many of these bytes count as code: either all, and *data is then zero, or none. The
 * caller must call end_little afterwards.
 */
static uint64_t begin_little(struct td_image_data *data)
{
	uint64_t bytes = data->device_bytes;

	if (__builtin_add_overflow(bytes, data->managed_bytes, &bytes) || bytes > TD_LITTLE_BYTES ||
		!bytes)
		return 0;
	if (td_outside_bytes(TD_DEVICE_CURRENT, TD_OUTSIDE_LITTLE) +
			atomic_fetch_add(&little_bytes, bytes) + bytes >
		TD_LITTLE_BYTES) {
		atomic_fetch_sub(&little_bytes, bytes);
		return 0;
	}
	data->device_bytes = data->managed_bytes = 0;
	return bytes;
}

static void end_little(uint64_t bytes, CUresult r, uint64_t module)
{
	if (bytes && !r)
		td_outside_note(TD_OUTSIDE_LITTLE, TD_KEY_MODULE, module, bytes);
	atomic_fetch_sub(&little_bytes, bytes);
}

/* -- asking for memory -- */

CUresult td_data_claim(struct td_data_claim *ret, const struct td_image_data *data)
{
	CUresult r = CUDA_SUCCESS;

	memset(ret, 0, sizeof(*ret));
	if (data->device_bytes)
		r = td_outside_claim(
			&ret->device, TD_DEVICE_CURRENT, TD_OUTSIDE_DATA, data->device_bytes);
	if (r || !data->managed_bytes)
		return r;
	r = td_outside_claim(
		&ret->managed, TD_DEVICE_CURRENT, TD_OUTSIDE_MANAGED, data->managed_bytes);
	return r ? td_outside_settle(&ret->device, r, TD_KEY_MODULE, 0) : r;
}

bool td_data_again(struct td_data_claim *claim, CUresult r)
{
	return td_outside_again(&claim->device, r) || td_outside_again(&claim->managed, r);
}

CUresult td_data_settle(struct td_data_claim *claim, CUresult r, enum td_outside_key device,
	enum td_outside_key managed, uint64_t value)
{
	(void)td_outside_settle(&claim->device, r, device, value);
	return td_outside_settle(&claim->managed, r, managed, value);
}

/* -- modules whose image does not tell their size -- */

struct measure {
	bool wanted;
	unsigned loads;
	uint64_t free_bytes, least_bytes,
		known_bytes; /* known: what the image tells and is counted already */
};

static void begin_measure(struct measure *m)
{
	size_t total, now;

	if (!m->wanted)
		return;
	m->wanted = td_real.cuMemGetInfo_v2 && !td_real.cuMemGetInfo_v2(&now, &total);
	m->free_bytes = m->wanted ? now : 0;
}

static struct measure measure_of(const struct td_image_data *data)
{
	struct measure m = {.least_bytes = UINT64_MAX, .known_bytes = data->device_bytes};
	int slot = data->unknown ? td_context_use() : -1;

	m.wanted = slot >= 0 && td_client_has_limit((unsigned)slot);
	begin_measure(&m);
	return m;
}

/* Returns true if the module was unloaded and must be loaded once more to measure it again. */
static bool is_in_doubt(struct measure *m, CUmodule module)
{
	uint64_t before = m->least_bytes, took = 0;
	size_t total, now;

	if (!m->wanted)
		return false;
	if (!td_real.cuMemGetInfo_v2(&now, &total) && now < m->free_bytes)
		took = m->free_bytes - now;
	if (took < m->least_bytes)
		m->least_bytes = took;
	if (took <= m->known_bytes + TD_LITTLE_BYTES || took == before ||
		++m->loads == LOADS_MOST || td_real.cuModuleUnload(module))
		return false;
	begin_measure(m);
	return true;
}

static CUresult count_measured(const struct measure *m, CUmodule module)
{
	struct td_image_data data = {.device_bytes = m->least_bytes > m->known_bytes
							     ? m->least_bytes - m->known_bytes
							     : 0};
	uint64_t little = begin_little(&data);
	struct td_data_claim claim;
	CUresult r = td_data_claim(&claim, &data);

	end_little(little, r, (uint64_t)module);
	if (r)
		(void)td_real.cuModuleUnload(module);
	return r ? r
		 : td_data_settle(
			   &claim, r, TD_KEY_MODULE, TD_KEY_MODULE_MANAGED, (uint64_t)module);
}

/* -- hooks -- */

#define LOAD_MODULE(symbol, data_of)                                                               \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct td_image_data data = a0 ? data_of(a1) : (struct td_image_data){0};          \
		struct measure measure = measure_of(&data);                                        \
		uint64_t little = begin_little(&data);                                             \
		struct td_data_claim claim;                                                        \
		CUresult r = td_data_claim(&claim, &data);                                         \
		if (r)                                                                             \
			return r;                                                                  \
		do                                                                                 \
			r = td_real.symbol TD_ARGS_##symbol;                                       \
		while (r ? td_data_again(&claim, r) : a0 && is_in_doubt(&measure, *a0));           \
		if (!r && measure.wanted)                                                          \
			r = count_measured(&measure, *a0);                                         \
		end_little(little, r, r || !a0 ? 0 : (uint64_t)*a0);                               \
		return td_data_settle(&claim, r, TD_KEY_MODULE, TD_KEY_MODULE_MANAGED,             \
			r || !a0 ? 0 : (uint64_t)*a0);                                             \
	}

LOAD_MODULE(cuModuleLoad, td_data_of_file)
LOAD_MODULE(cuModuleLoadData, td_data_of_image)
LOAD_MODULE(cuModuleLoadDataEx, td_data_of_image)
LOAD_MODULE(cuModuleLoadFatBinary, td_data_of_image)

/* Takes all keys of the module: for what the image told, and for what was measured. */
static struct td_key *take_all(enum td_outside_key what, CUmodule module)
{
	struct td_key *all = NULL, *key;

	while ((key = td_outside_take(what, (uint64_t)module))) {
		key->next = all;
		all = key;
	}
	return all;
}

CUresult td_hook_cuModuleUnload(CUmodule a0)
{
	struct td_key *device = take_all(TD_KEY_MODULE, a0),
		      *managed = take_all(TD_KEY_MODULE_MANAGED, a0);
	CUresult r = td_real.cuModuleUnload(a0);

	td_meter_forget();
	(void)td_outside_end(device, r);
	return td_outside_end(managed, r);
}
