/*
 * The process's GPUs, contexts and streams; see context.h. captures.c has the captures. All tables
 * are fixed in size: an overflow is flagged, and the drain then takes the slower of its two ways. A
 * submission through an open gate runs none of this.
 */
#include "preload/context/context.h"

#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "preload/base/agent_calls.h"
#include "preload/base/lock.h"
#include "preload/context/marker.h"
#include "preload/driver/choose.h"
#include "preload/driver/driver.h"
#include "proto/proto.h"

#define STREAM_MAX 1024
/* How long a context's end waits for the drain's call to get out of the way. */
#define WAIT_SLICE_NS       (200 * TD_NS_PER_US)
#define CONTEXT_WAIT_MAX_NS (1 * TD_NS_PER_S)
/*
 * A context's end waits at most this long for the agent, which moves memory there. The agent waits
 * for none of the program's work.
 */
#define MOVE_WAIT_MAX_NS (10 * TD_NS_PER_S)

struct stream {
	void *handle, *context; /* handle NULL: free */
};

static struct td_lock table_lock = TD_LOCK_INIT(TD_RANK_CONTEXT);
/* guarded by table_lock */
static struct td_context contexts[TD_CONTEXT_MAX];
static struct td_gpu_info gpus[TD_SLOT_MAX];
static unsigned gpu_count;
static struct stream streams[STREAM_MAX];
static unsigned stream_top;   /* entries from here on were never used */
static bool streams_overflow; /* true if some stream did not fit the table */
static uint64_t next_serial = 1;

/* The contexts that the library's threads are working on. */
static void *_Atomic in_use[TD_CLAIM_N];

static bool still(uint64_t start_ns, uint64_t most_ns)
{
	uint64_t now_ns = td_time_now_ns();

	if (now_ns - start_ns >= most_ns)
		return false;
	td_time_sleep_until_ns(now_ns + WAIT_SLICE_NS);
	return true;
}

/* -- GPUs and contexts -- */

static struct td_context *find_context(const void *handle)
{
	for (unsigned i = 0; i < TD_CONTEXT_MAX; i++)
		if (handle && contexts[i].handle == handle)
			return &contexts[i];
	return NULL;
}

static struct td_context *find_serial(uint64_t serial)
{
	for (unsigned i = 0; i < TD_CONTEXT_MAX; i++)
		if (serial && contexts[i].handle && contexts[i].serial == serial)
			return &contexts[i];
	return NULL;
}

/*
 * enum td_ungoverned: why the first such context cannot be followed. Later reasons do not replace
 * it.
 */
static _Atomic uint8_t ungoverned;

static void note_ungoverned(enum td_ungoverned why)
{
	uint8_t none = TD_GOVERNED;

	if (atomic_compare_exchange_strong(&ungoverned, &none, (uint8_t)why))
		(void)td_agent_start();
}

uint8_t td_context_ungoverned(void)
{
	return atomic_load(&ungoverned);
}

/*
 * After a checkpoint was restored on other GPUs: which GPU the driver now means by each GPU of
 * before, as long as the names in this process have not changed. Guarded by table_lock.
 */
static struct renamed {
	uint8_t named[16], is[16];
} renamed[TD_GPU_MAX];
static unsigned renamed_count;

static void set_put(const uint8_t *before, const uint8_t *now)
{
	for (unsigned i = 0; i < renamed_count; i++)
		if (!memcmp(renamed[i].is, before, 16)) {
			memcpy(renamed[i].is, now, 16);
			return;
		}
	if (renamed_count == TD_GPU_MAX)
		return;
	memcpy(renamed[renamed_count].named, before, 16);
	memcpy(renamed[renamed_count++].is, now, 16);
}

void td_context_put(unsigned slot, const uint8_t uuid[16])
{
	const struct td_driver *driver = td_driver();
	uint8_t before[16], none[16] = {0}, named[16];

	td_lock_take(&table_lock);
	memcpy(before, gpus[slot].uuid, 16);
	if (driver->device_get_uuid(named, gpus[slot].device) || memcmp(named, uuid, 16)) {
		/* The two have changed places. */
		set_put(uuid, none);
		set_put(before, uuid);
		set_put(none, before);
	}
	for (unsigned i = 0; i < gpu_count; i++)
		if (!memcmp(gpus[i].uuid, uuid, 16))
			memcpy(gpus[i].uuid, before, 16);
	memcpy(gpus[slot].uuid, uuid, 16);
	td_lock_drop(&table_lock);
}

/* The caller holds table_lock. */
static int find_gpu(struct td_gpu_info *info)
{
	for (unsigned i = 0; i < renamed_count; i++)
		if (!memcmp(renamed[i].named, info->uuid, 16)) {
			memcpy(info->uuid, renamed[i].is, 16);
			break;
		}

	for (unsigned i = 0; i < gpu_count; i++)
		if (!memcmp(gpus[i].uuid, info->uuid, sizeof(info->uuid)))
			return (int)i;
	if (gpu_count == TD_SLOT_MAX)
		return -1;
	gpus[gpu_count] = *info;
	return (int)gpu_count++;
}

static bool ask_gpu(const struct td_driver *driver, struct td_gpu_info *info)
{
	uint64_t free_bytes = 0, seen_bytes = 0;

	memset(info, 0, sizeof(*info));
	if (driver->ctx_get_device(&info->device))
		return false;
	if (driver->device_get_uuid(info->uuid, info->device) ||
		driver->device_total_mem(&info->total_bytes, info->device)) {
		note_ungoverned(TD_UNGOVERNED_UNNAMED);
		return false;
	}
	if (!driver->mem_get_info(&free_bytes, &seen_bytes) && seen_bytes > free_bytes)
		info->used_bytes = seen_bytes - free_bytes;
	if (driver->device_get_name(info->name, sizeof(info->name), info->device))
		info->name[0] = '\0';
	info->name[sizeof(info->name) - 1] = '\0';
	return true;
}

/*
 * Adds a context to the table. Returns its slot, or -1 if the table is full. *ret_new: the daemon
 * does not know this GPU, or not since its last context ended.
 */
static int add_context(void *handle, struct td_gpu_info *info, bool created, bool *ret_new)
{
	struct td_context *free = NULL;
	int slot;

	for (unsigned i = 0; i < TD_CONTEXT_MAX && !free; i++)
		if (!contexts[i].handle)
			free = &contexts[i];
	slot = free ? find_gpu(info) : -1;
	if (slot < 0)
		return -1;
	*free = (struct td_context){.handle = handle,
		.slot = (unsigned)slot,
		.created = created,
		.serial = next_serial++};
	*ret_new = !gpus[slot].context;
	if (*ret_new) {
		td_agent_expect((unsigned)slot);
		gpus[slot].context = handle;
		gpus[slot].serial = free->serial;
	}
	return slot;
}

static bool find_now(const void *handle, struct td_context *ret)
{
	const struct td_context *known;

	td_lock_take(&table_lock);
	known = find_context(handle);
	if (known)
		*ret = *known;
	td_lock_drop(&table_lock);
	return known != NULL;
}

/*
 * Returns the slot of a known context, or -1. If the context is ending, a new one may already have
 * the same handle: this waits, for a limited time, until that is decided.
 */
static int find_settled(const void *handle)
{
	struct td_context known;
	uint64_t start_ns;

	if (!find_now(handle, &known))
		return -1;
	if (!known.leaving)
		return (int)known.slot;
	start_ns = td_time_now_ns();
	while (known.leaving && still(start_ns, CONTEXT_WAIT_MAX_NS))
		if (!find_now(handle, &known))
			return -1;
	return (int)known.slot;
}

static int note_current(const struct td_driver *driver, void *handle, bool created)
{
	struct td_context *known;
	struct td_gpu_info info;
	enum td_ungoverned why = TD_GOVERNED;
	bool is_new = false;
	int slot;

	slot = find_settled(handle);
	if (slot >= 0) {
		td_agent_await((unsigned)slot);
		return slot;
	}
	if (!ask_gpu(driver, &info))
		return -1;
	td_choose();
	td_lock_take(&table_lock);
	known = find_context(handle);
	slot = known ? (int)known->slot : add_context(handle, &info, created, &is_new);
	if (slot < 0)
		why = gpu_count == TD_SLOT_MAX ? TD_UNGOVERNED_GPUS : TD_UNGOVERNED_CONTEXTS;
	td_lock_drop(&table_lock);
	if (slot < 0)
		note_ungoverned(why);
	if (is_new)
		td_agent_introduce((unsigned)slot);
	else if (slot >= 0)
		td_agent_await((unsigned)slot);
	return slot;
}

static void *current(const struct td_driver *driver)
{
	void *handle = NULL;

	return driver && !driver->ctx_get_current(&handle) ? handle : NULL;
}

int td_context_use(void)
{
	const struct td_driver *driver = td_driver();
	void *handle = current(driver);
	int saved = errno, slot;

	if (!handle)
		return -1;
	slot = note_current(driver, handle, false);
	errno = saved;
	return slot;
}

/* Gets the table's entry of the current context. Returns false if there is none. */
static bool find_current(struct td_context *ret)
{
	return find_now(current(td_driver()), ret);
}

int td_context_slot(void)
{
	struct td_context context;

	return find_current(&context) ? (int)context.slot : -1;
}

uint64_t td_context_serial(void)
{
	struct td_context context;

	return find_current(&context) ? context.serial : 0;
}

uint64_t td_context_serial_of(const void *context)
{
	struct td_context known;

	return find_now(context, &known) ? known.serial : 0;
}

bool td_context_is_alive(uint64_t serial)
{
	bool alive;

	td_lock_take(&table_lock);
	alive = find_serial(serial) != NULL;
	td_lock_drop(&table_lock);
	return alive;
}

bool td_context_is_left(uint64_t serial)
{
	const struct td_context *known;
	bool left;

	td_lock_take(&table_lock);
	known = find_serial(serial);
	left = known && known->left;
	td_lock_drop(&table_lock);
	return left;
}

/*
 * The thread that ends a context announces it first under the lock, so under the lock no context
 * ends. Neither call waits.
 */
bool td_context_event_is_over(uint64_t serial, void *event)
{
	const struct td_context *known;
	bool over = true;

	td_lock_take(&table_lock);
	known = find_serial(serial);
	if (known)
		over = !known->leaving &&
		       td_driver()->event_query(event) != TD_CUDA_ERROR_NOT_READY;
	td_lock_drop(&table_lock);
	return over;
}

void td_context_event_destroy(uint64_t serial, void *event)
{
	const struct td_context *known;

	if (!event)
		return;
	td_lock_take(&table_lock);
	known = find_serial(serial);
	if (known && !known->leaving)
		(void)td_driver()->event_destroy(event);
	td_lock_drop(&table_lock);
}

void td_context_note(void *context, bool created)
{
	const struct td_driver *driver = td_driver();
	int saved = errno;

	if (context && current(driver) == context)
		(void)note_current(driver, context, created);
	errno = saved;
}

static void forget_streams(const void *context)
{
	for (unsigned i = 0; i < stream_top; i++)
		if (streams[i].context == context)
			streams[i] = (struct stream){0};
}

/*
 * Chooses another living context of the GPU for the library's own calls. The caller holds
 * table_lock.
 */
static void choose_context(unsigned slot)
{
	struct td_gpu_info *gpu = &gpus[slot];

	gpu->context = NULL;
	for (unsigned i = 0; i < TD_CONTEXT_MAX && !gpu->context; i++) {
		if (!contexts[i].handle || contexts[i].slot != slot || contexts[i].left)
			continue;
		gpu->context = contexts[i].handle;
		gpu->serial = contexts[i].serial;
	}
}

/* Returns true if it was the last context of its GPU. The caller holds table_lock. */
static bool remove_context(struct td_context *known)
{
	const struct td_gpu_info *gpu = &gpus[known->slot];
	const void *handle = known->handle;

	known->handle = NULL;
	forget_streams(handle);
	if (gpu->context != handle)
		return false;
	choose_context(known->slot);
	return !gpu->context;
}

void td_context_set_left(const void *context, bool left)
{
	struct td_context *known;
	bool had = false, has = false;
	unsigned slot = 0;

	td_lock_take(&table_lock);
	known = find_context(context);
	if (known && known->left != left) {
		slot = known->slot;
		had = gpus[slot].context;
		known->left = left;
		choose_context(slot);
		has = gpus[slot].context;
		if (has && !had)
			td_agent_expect(slot);
	}
	td_lock_drop(&table_lock);
	if (had != has)
		td_agent_wake();
}

static void wait_unused(const void *handle)
{
	static const uint64_t most_ns[TD_CLAIM_N] = {
		[TD_CLAIM_DRAIN] = CONTEXT_WAIT_MAX_NS, [TD_CLAIM_AGENT] = MOVE_WAIT_MAX_NS};

	for (unsigned who = 0; who < TD_CLAIM_N && handle; who++) {
		uint64_t start_ns = td_time_now_ns();

		while (atomic_load(&in_use[who]) == handle && still(start_ns, most_ns[who]))
			;
	}
}

void td_context_gone(void *context)
{
	struct td_context *known;
	bool last;

	td_lock_take(&table_lock);
	known = find_context(context);
	last = known && remove_context(known);
	td_lock_drop(&table_lock);
	td_captures_context_ended(context);
	wait_unused(context);
	if (last)
		td_agent_wake();
}

void *td_context_primary(int device)
{
	void *handle = NULL;

	td_lock_take(&table_lock);
	for (unsigned i = 0; i < TD_CONTEXT_MAX && !handle; i++)
		if (contexts[i].handle && !contexts[i].created &&
			gpus[contexts[i].slot].device == device)
			handle = contexts[i].handle;
	td_lock_drop(&table_lock);
	return handle;
}

uint64_t td_context_leaving(void *context)
{
	struct td_context *known;
	uint64_t serial;

	td_lock_take(&table_lock);
	known = find_context(context);
	serial = known ? known->serial : 0;
	if (known)
		known->leaving++;
	td_lock_drop(&table_lock);
	wait_unused(context);
	return serial;
}

bool td_context_ends(uint64_t serial)
{
	struct td_context *known;
	bool first;

	td_lock_take(&table_lock);
	known = find_serial(serial);
	first = !serial || (known && !known->ended);
	if (known)
		known->ended = true;
	td_lock_drop(&table_lock);
	return first;
}

void td_context_left(void *context, uint64_t serial, bool gone)
{
	struct td_context *known;

	if (gone) {
		td_context_gone(context);
		return;
	}
	td_lock_take(&table_lock);
	known = find_serial(serial);
	if (known)
		known->leaving--;
	td_lock_drop(&table_lock);
}

unsigned td_context_list(struct td_context *ret, unsigned max)
{
	unsigned count = 0;

	td_lock_take(&table_lock);
	for (unsigned i = 0; i < TD_CONTEXT_MAX && count < max; i++)
		if (contexts[i].handle)
			ret[count++] = contexts[i];
	td_lock_drop(&table_lock);
	return count;
}

bool td_context_claim(enum td_claim who, const struct td_context *context, bool by_try)
{
	for (;;) {
		const struct td_context *known;
		bool alive, leaving;

		atomic_store(&in_use[who], context->handle);
		td_lock_take(&table_lock);
		known = find_context(context->handle);
		alive = known && known->serial == context->serial;
		leaving = alive && known->leaving;
		td_lock_drop(&table_lock);
		if (alive && !leaving)
			return true;
		atomic_store(&in_use[who], NULL);
		if (!alive || by_try)
			return false;
		td_time_sleep_until_ns(td_time_now_ns() + WAIT_SLICE_NS);
	}
}

void td_context_unclaim(enum td_claim who)
{
	atomic_store(&in_use[who], NULL);
}

bool td_context_gpu(unsigned slot, struct td_gpu_info *ret)
{
	bool known;

	td_lock_take(&table_lock);
	known = slot < gpu_count;
	if (known)
		*ret = gpus[slot];
	td_lock_drop(&table_lock);
	return known;
}

unsigned td_context_gpu_count(void)
{
	unsigned count;

	td_lock_take(&table_lock);
	count = gpu_count;
	td_lock_drop(&table_lock);
	return count;
}

/* -- streams -- */

static void add_stream(void *stream, void *context)
{
	unsigned i = 0;

	if (!stream)
		return;
	td_lock_take(&table_lock);
	while (i < stream_top && streams[i].handle)
		i++;
	/*
	 * A stream that was created with no context current belongs to a context that we do not
	 * know.
	 */
	if (!context || i == STREAM_MAX) {
		streams_overflow = true;
	} else {
		streams[i] = (struct stream){stream, context};
		if (i == stream_top)
			stream_top++;
	}
	td_lock_drop(&table_lock);
}

void td_context_stream_created(void *stream)
{
	add_stream(stream, current(td_driver()));
}

void td_context_stream_stays(void *stream, void *context)
{
	add_stream(stream, context);
}

void *td_context_stream_ends(void *stream)
{
	void *context = NULL;

	/*
	 * Captures are held off, as the drain does while it uses the table's handles, so these stay
	 * alive.
	 */
	(void)td_context_hold_captures();
	td_lock_take(&table_lock);
	for (unsigned i = 0; i < stream_top; i++) {
		if (streams[i].handle != stream)
			continue;
		context = streams[i].context;
		streams[i] = (struct stream){0};
	}
	td_lock_drop(&table_lock);
	td_context_release_captures();
	return context;
}

void *td_context_of_stream(const void *stream)
{
	void *context = current(td_driver());

	td_lock_take(&table_lock);
	for (unsigned i = 0; i < stream_top; i++)
		if (streams[i].handle && streams[i].handle == stream)
			context = streams[i].context;
	td_lock_drop(&table_lock);
	return context;
}

bool td_context_streams(const void *context, void **ret, unsigned max, unsigned *ret_count)
{
	unsigned count = 0;
	bool complete;

	td_lock_take(&table_lock);
	complete = !streams_overflow;
	for (unsigned i = 0; i < stream_top; i++) {
		if (!streams[i].handle || streams[i].context != context)
			continue;
		if (count < max)
			ret[count++] = streams[i].handle;
		else
			complete = false;
	}
	td_lock_drop(&table_lock);
	*ret_count = count;
	return complete;
}

void td_context_forked(void)
{
	atomic_store(&ungoverned, TD_GOVERNED);
	td_lock_reset(&table_lock);
	memset(contexts, 0, sizeof(contexts));
	memset(gpus, 0, sizeof(gpus));
	memset(streams, 0, sizeof(streams));
	gpu_count = stream_top = 0;
	streams_overflow = false;
	for (unsigned who = 0; who < TD_CLAIM_N; who++)
		atomic_store(&in_use[who], NULL);
	td_captures_forked();
}
