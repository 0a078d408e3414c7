/*
 * Makes twins and switches from one home to the next; see rehome.h. The agent, and the thread that
 * makes twins before a move, write the state of the process's home. Other threads only read it:
 * `here` tells where the process lives, and is written last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "preload/base/futex.h"
#include "preload/context/context.h"
#include "preload/context/marker.h"
#include "preload/driver/real.h"
#include "preload/rehome/adapt.h"
#include "preload/rehome/objects.h"

#define AFFINITY_SM_COUNT 0 /* CU_EXEC_AFFINITY_TYPE_SM_COUNT */

_Atomic uint64_t td_unmovable_noted;

static _Atomic int here = -1; /* the current home; negative: no context was named yet */
static int first = -1;        /* home of the program's own context */
static void *_Atomic contexts[TD_HOMES_MAX];
/* For homes with a share: the device, and the SMs that were asked for. */
static CUdevice devices[TD_HOMES_MAX];
static uint32_t asked[TD_HOMES_MAX], sms[TD_HOMES_MAX]; /* sms: that the context has; 0: unknown */
static _Atomic bool moved;

/*
 * An event of each home and the time when it was recorded, to compare times of events at different
 * homes.
 */
static struct anchor {
	CUevent event;
	uint64_t at_ns;
} anchors[TD_HOMES_MAX];

int td_rehome_here(void)
{
	return atomic_load_explicit(&here, memory_order_acquire);
}

CUcontext td_rehome_context(int home)
{
	return home >= 0 && home < TD_HOMES_MAX ? atomic_load(&contexts[home]) : NULL;
}

static bool is_one_of_ours(const void *context)
{
	for (unsigned h = 0; context && h < TD_HOMES_MAX; h++)
		if (atomic_load_explicit(&contexts[h], memory_order_relaxed) == context)
			return true;
	return false;
}

void td_rehome_sync(void)
{
	CUcontext now = NULL, mine = td_rehome_context(td_rehome_here());

	/* The library's own threads choose their contexts themselves. */
	if (td_marker_self && td_marker_self->internal)
		return;
	if (!mine || td_true->cuCtxGetCurrent(&now) || now == mine || !is_one_of_ours(now))
		return;
	(void)td_true->cuCtxSetCurrent(mine);
}

void td_adapt_sync(void)
{
	if (atomic_load_explicit(&moved, memory_order_acquire))
		td_rehome_sync();
}

static CUdevice device_of(int home)
{
	return home < TD_HOMES_SHARES ? home : devices[home];
}

CUdevice td_rehome_device(CUdevice device)
{
	int at = td_rehome_here();

	return at >= 0 && device == first ? device_of(at) : device;
}

CUdevice td_rehome_device_shown(CUdevice device)
{
	/* This holds during a move too, when some of the memory is on either GPU. */
	return device < TD_HOMES_SHARES && td_rehome_here() >= 0 && td_rehome_context(device)
		       ? first
		       : device;
}

void td_adapt_stream_ends(void *stream)
{
	(void)td_context_stream_ends(stream);
}

/* -- calls that make or end objects exclude the switch -- */

static _Atomic int32_t possible = -1; /* negative: not known yet */
static _Atomic bool has_others;       /* the process sees other GPUs */
static _Atomic uint32_t inside, closed;
static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

bool td_rehome_has_shares(CUdevice device)
{
	int is = 0;

	return td_true->cuDeviceGetExecAffinitySupport && td_true->cuCtxGetExecAffinity &&
	       (td_true->cuCtxCreate_v3 || td_true->cuCtxCreate_v4) &&
	       !td_true->cuDeviceGetExecAffinitySupport(&is, AFFINITY_SM_COUNT, device) && is;
}

/* The driver is initialised, because the program is making an object. */
static bool ask_possible(void)
{
	int count = 0, is;

	if (!td_true->cuDeviceGetCount || td_true->cuDeviceGetCount(&count))
		return false;
	atomic_store(&has_others, count > 1);
	is = count <= TD_HOMES_SHARES && (count > 1 || td_rehome_has_shares(0));
	if (!is)
		td_record_install(false);
	atomic_store(&possible, is);
	return is;
}

bool td_rehome_is_possible(void)
{
	int32_t is = atomic_load_explicit(&possible, memory_order_relaxed);

	return is < 0 ? ask_possible() : is;
}

void td_rehome_begin(void)
{
	if (depth++ || !td_rehome_is_possible())
		return;
	for (;;) {
		atomic_fetch_add(&inside, 1);
		if (!atomic_load(&closed)) {
			is_inside = true;
			return;
		}
		atomic_fetch_sub(&inside, 1);
		td_futex_wait(&closed, 1, TD_NS_PER_S, false);
	}
}

void td_rehome_end(void)
{
	if (--depth || !is_inside)
		return;
	is_inside = false;
	atomic_fetch_sub(&inside, 1);
}

bool td_rehome_close(uint64_t timeout_ns, void (*hurry)(void))
{
	uint64_t until_ns = td_time_now_ns() + timeout_ns;

	atomic_store(&closed, 1);
	while (atomic_load(&inside)) {
		uint64_t now_ns = td_time_now_ns();

		if (now_ns >= until_ns) {
			td_rehome_open();
			return false;
		}
		hurry();
		td_time_sleep_until_ns(now_ns + 50 * TD_NS_PER_US);
	}
	return true;
}

void td_rehome_open(void)
{
	atomic_store(&closed, 0);
	td_futex_wake_all(&closed, false);
}

void td_rehome_load(void)
{
	td_record_install(true);
}

/* -- reasons -- */

uint64_t td_rehome_reasons(void)
{
	uint64_t reasons = atomic_load(&td_unmovable_noted);

	if (td_twin_with_variables())
		reasons |= TD_UNMOVABLE(VARIABLES);
	if (td_twin_without_image())
		reasons |= TD_UNMOVABLE(IMAGE);
	if (!td_rehome_is_possible())
		reasons |= TD_UNMOVABLE(ONE_GPU) | TD_UNMOVABLE(NO_SHARES);
	else if (!atomic_load(&has_others))
		reasons |= TD_UNMOVABLE(ONE_GPU);
	return reasons;
}

/* -- twins -- */

static CUresult set_all(const struct td_twin *row, void *at, int home)
{
	CUdevice device = device_of(home);
	CUresult r = CUDA_SUCCESS;

	for (unsigned i = 0; i < row->set_count && !r; i++) {
		const struct td_twin_set *set = &row->sets[i];
		bool is_kernel = row->kind == TD_TWIN_KERNEL;

		if (set->what == TD_TWIN_SET_SHARED)
			r = td_true->cuFuncSetSharedMemConfig(at, set->value);
		else if (set->what == TD_TWIN_SET_CACHE)
			r = is_kernel ? td_true->cuKernelSetCacheConfig(at, set->value, device)
				      : td_true->cuFuncSetCacheConfig(at, set->value);
		else
			r = is_kernel ? td_true->cuKernelSetAttribute(
						set->what, set->value, at, device)
				      : td_true->cuFuncSetAttribute(at, set->what, set->value);
	}
	return r;
}

static CUresult make_function(const struct td_twin *row, int home, CUfunction *ret)
{
	CUmodule module;
	bool known;

	if (row->of_library)
		return td_true->cuKernelGetFunction(ret, (void *)(uintptr_t)row->of);
	module = td_twin_at(TD_TWIN_MODULE, row->of, home, &known);
	if (!module && known)
		module = td_twin_here(TD_TWIN_MODULE, (void *)(uintptr_t)row->of);
	return module ? td_true->cuModuleGetFunction(ret, module, row->name)
		      : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult make_module(const struct td_twin *row, CUmodule *ret)
{
	if (row->of_library)
		return td_true->cuLibraryGetModule(ret, (void *)(uintptr_t)row->of);
	return row->image ? td_true->cuModuleLoadData(ret, row->image) : CUDA_ERROR_INVALID_IMAGE;
}

static CUresult make(const struct td_twin *row, int home, void **ret)
{
	CUresult r = CUDA_ERROR_INVALID_HANDLE;

	switch (row->kind) {
	case TD_TWIN_STREAM:
		r = td_true->cuStreamCreateWithPriority((CUstream *)ret, row->flags, row->priority);
		if (!r)
			td_context_stream_stays(*ret, td_rehome_context(home));
		break;
	case TD_TWIN_EVENT: r = td_true->cuEventCreate((CUevent *)ret, row->flags); break;
	case TD_TWIN_MODULE: r = make_module(row, (CUmodule *)ret); break;
	case TD_TWIN_FUNCTION: r = make_function(row, home, (CUfunction *)ret); break;
	case TD_TWIN_KERNEL: /* the same handle on each GPU */
	case TD_TWIN_LIBRARY:
		*ret = row->handles[row->first];
		r = CUDA_SUCCESS;
		break;
	case TD_TWIN_CONTEXT: break;
	}
	return r;
}

static void unmake(enum td_twin_kind kind, void *at)
{
	switch (kind) {
	case TD_TWIN_STREAM:
		(void)td_context_stream_ends(at);
		(void)td_true->cuStreamDestroy_v2(at);
		return;
	case TD_TWIN_EVENT: (void)td_true->cuEventDestroy_v2(at); return;
	case TD_TWIN_MODULE:
	case TD_TWIN_FUNCTION:
	case TD_TWIN_KERNEL:
	case TD_TWIN_LIBRARY:
	/* the driver gives the same handle again, or the module's twin has it */
	case TD_TWIN_CONTEXT: return;
	}
}

/* The context of that home is current. */
static CUresult make_at(const struct td_twin *row, int home)
{
	void *program = row->handles[row->first], *at = NULL;
	CUresult r;

	if (row->handles[home])
		return set_all(row, row->handles[home], home);
	r = make(row, home, &at);
	if (!r)
		r = set_all(row, at, home);
	if (r || !td_twin_set_handle(row->kind, program, home, at)) {
		bool known;

		if (at)
			unmake(row->kind, at);
		/* Another thread was faster, or the program has ended the object meanwhile. */
		return r || td_twin_at(row->kind, program, home, &known) || !known
			       ? r
			       : CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

void *td_twin_here(enum td_twin_kind kind, void *handle)
{
	int home = td_rehome_here();
	struct td_twin row;
	void *at;
	bool known;

	if (home < 0 || !handle || !atomic_load_explicit(&moved, memory_order_acquire))
		return handle;
	at = td_twin_at(kind, handle, home, &known);
	if (at || !known)
		return at ? at : handle;
	td_twins_keep();
	if (td_twin_get(kind, handle, &row))
		(void)make_at(&row, home);
	td_twins_let_go();
	at = td_twin_at(kind, handle, home, &known);
	return at ? at : handle;
}

static int make_one(const struct td_twin *row, void *arg)
{
	return make_at(row, *(const int *)arg);
}

CUresult td_rehome_make_all(int home)
{
	return td_twin_each(make_one, &home);
}

/* -- contexts -- */

/* CUexecAffinityParam and CUctxCreateParams of cuda.h */
struct affinity {
	int type;
	uint32_t sm_count;
};
struct create_params {
	const struct affinity *affinity;
	int affinity_count;
	void *graphics;
};

/* The context is current. */
static uint32_t count_sms(void)
{
	struct affinity has = {0};

	return td_true->cuCtxGetExecAffinity &&
			       !td_true->cuCtxGetExecAffinity(&has, AFFINITY_SM_COUNT)
		       ? has.sm_count
		       : 0;
}

static uint32_t sms_of(CUcontext context)
{
	CUcontext popped;
	uint32_t count;

	if (td_true->cuCtxPushCurrent_v2(context))
		return 0;
	count = count_sms();
	(void)td_true->cuCtxPopCurrent_v2(&popped);
	return count;
}

int td_rehome_adopt(CUcontext context, int home)
{
	CUcontext before;

	if (home < 0 || home >= TD_HOMES_SHARES)
		return -1;
	before = td_rehome_context(td_rehome_here());
	if (before)
		return before == context ? 0 : -1;
	atomic_store(&contexts[home], context);
	first = home;
	sms[home] = sms_of(context);
	atomic_store(&here, home);
	return 0;
}

/* The settings of a context, which its twin gets too. The context to read is current. */
#define LIMITS 8
struct settings {
	unsigned flags;
	size_t limits[LIMITS];
	bool has_limit[LIMITS];
	int cache, shared;
	bool has_cache, has_shared;
};

static void read_settings(struct settings *s)
{
	memset(s, 0, sizeof(*s));
	if (td_true->cuCtxGetFlags && td_true->cuCtxGetFlags(&s->flags))
		s->flags = 0;
	for (int i = 0; i < LIMITS && td_true->cuCtxGetLimit; i++)
		s->has_limit[i] = !td_true->cuCtxGetLimit(&s->limits[i], i);
	s->has_cache = td_true->cuCtxGetCacheConfig && !td_true->cuCtxGetCacheConfig(&s->cache);
	s->has_shared =
		td_true->cuCtxGetSharedMemConfig && !td_true->cuCtxGetSharedMemConfig(&s->shared);
}

static void write_settings(const struct settings *s)
{
	size_t has;

	for (int i = 0; i < LIMITS; i++)
		if (s->has_limit[i] && (td_true->cuCtxGetLimit(&has, i) || has != s->limits[i]))
			(void)td_true->cuCtxSetLimit(i, s->limits[i]);
	if (s->has_cache)
		(void)td_true->cuCtxSetCacheConfig(s->cache);
	if (s->has_shared)
		(void)td_true->cuCtxSetSharedMemConfig(s->shared);
}

static CUresult create(int home, unsigned flags, CUcontext *ret)
{
	struct affinity affinity = {.type = AFFINITY_SM_COUNT, .sm_count = asked[home]};
	struct create_params params = {.affinity = &affinity, .affinity_count = 1};

	if (home < TD_HOMES_SHARES)
		return td_true->cuCtxCreate_v2(ret, flags, home);
	return td_true->cuCtxCreate_v4
		       ? td_true->cuCtxCreate_v4(ret, &params, flags, devices[home])
		       : td_true->cuCtxCreate_v3(ret, &affinity, 1, flags, devices[home]);
}

uint32_t td_rehome_sms(int home)
{
	return home >= 0 && home < TD_HOMES_MAX ? sms[home] : 0;
}

bool td_rehome_is_for(int home, uint32_t count)
{
	return sms[home] == count ||
	       (home >= TD_HOMES_SHARES && asked[home] == count && sms[home] > count);
}

static uint32_t distance(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

int td_rehome_home_of_share(uint32_t count)
{
	CUdevice device = device_of(td_rehome_here());
	int free = -1, nearest = device;

	for (int h = 0; h < TD_HOMES_MAX; h++) {
		if (h < TD_HOMES_SHARES && h != device)
			continue;
		if (!td_rehome_context(h)) {
			free = free < 0 && h >= TD_HOMES_SHARES ? h : free;
			continue;
		}
		if (device_of(h) != device)
			continue;
		if (sms[h] == count || (h >= TD_HOMES_SHARES && asked[h] == count))
			return h;
		if (distance(sms[h], count) < distance(sms[nearest], count))
			nearest = h;
	}
	if (free < 0)
		return nearest;
	devices[free] = device;
	asked[free] = count;
	return free;
}

CUresult td_rehome_make_context(int home, CUcontext *ret)
{
	CUcontext source = td_rehome_context(td_rehome_here()), twin, popped;
	struct settings settings;
	CUresult r;

	if (home < 0 || home >= TD_HOMES_MAX || !source)
		return CUDA_ERROR_INVALID_DEVICE;
	r = td_true->cuCtxPushCurrent_v2(source);
	if (r)
		return r;
	read_settings(&settings);
	(void)td_true->cuCtxPopCurrent_v2(&popped);
	twin = td_rehome_context(home);
	/* The flags of a primary context have a bit that a new context does not accept. */
	r = twin ? td_true->cuCtxPushCurrent_v2(twin) : create(home, settings.flags & 0x1f, &twin);
	if (r)
		return r;
	sms[home] = count_sms();
	write_settings(&settings);
	atomic_store(&contexts[home], twin);
	*ret = twin;
	return CUDA_SUCCESS;
}

/* Records the home's event and time. Its context is current, and nothing runs there. */
static void set_anchor(int home)
{
	struct anchor *anchor = &anchors[home];

	if (!anchor->event && td_true->cuEventCreate(&anchor->event, CU_EVENT_DEFAULT)) {
		anchor->event = NULL;
		return;
	}
	if (!td_true->cuEventRecord(anchor->event, CU_STREAM_LEGACY))
		(void)td_true->cuEventSynchronize(anchor->event);
	anchor->at_ns = td_time_now_ns();
}

static void anchor_at(int home)
{
	CUcontext popped;

	if (td_true->cuCtxPushCurrent_v2(td_rehome_context(home)))
		return;
	set_anchor(home);
	(void)td_true->cuCtxPopCurrent_v2(&popped);
}

void td_rehome_switch(int home)
{
	anchor_at(td_rehome_here());
	anchor_at(home);
	if (!atomic_load(&moved))
		td_adapt_install();
	atomic_store(&here, home);
	atomic_store_explicit(&moved, true, memory_order_release);
	atomic_store_explicit(&td_real_sync, td_rehome_sync, memory_order_release);
}

void *td_rehome_program_context(void *context)
{
	return first >= 0 && is_one_of_ours(context) ? td_rehome_context(first) : context;
}

void td_rehome_wait(const void *context)
{
	int at = td_rehome_here();
	CUcontext popped;

	if (!context || first < 0 || at == first || context != td_rehome_context(first) ||
		!td_rehome_context(at) || td_true->cuCtxPushCurrent_v2(td_rehome_context(at)))
		return;
	(void)td_true->cuCtxSynchronize();
	(void)td_true->cuCtxPopCurrent_v2(&popped);
}

void td_rehome_context_gone(void *context)
{
	td_twins_drop(context);
	if (!context || first < 0 || context != td_rehome_context(first))
		return;
	for (int h = 0; h < TD_HOMES_MAX; h++) {
		CUcontext twin = atomic_exchange(&contexts[h], NULL);

		anchors[h] = (struct anchor){0};
		asked[h] = sms[h] = 0;
		if (!twin || h == first)
			continue;
		td_context_gone(twin);
		(void)td_true->cuCtxDestroy_v2(twin);
	}
	first = -1;
	atomic_store(&here, -1);
}

/* -- times between events -- */

static CUresult elapsed(float *ret_ms, CUevent start, CUevent end, bool v2)
{
	return v2 && td_true->cuEventElapsedTime_v2
		       ? td_true->cuEventElapsedTime_v2(ret_ms, start, end)
		       : td_true->cuEventElapsedTime(ret_ms, start, end);
}

CUresult td_twin_elapsed(float *ret_ms, CUevent start, CUevent end, bool v2)
{
	float before, after;
	struct td_twin a, b;
	CUresult r;

	if (!td_twin_get(TD_TWIN_EVENT, start, &a) || !td_twin_get(TD_TWIN_EVENT, end, &b))
		return elapsed(ret_ms, start, end, v2);
	if (a.recorded == b.recorded)
		return elapsed(ret_ms, a.handles[a.recorded], b.handles[b.recorded], v2);
	r = elapsed(&before, a.handles[a.recorded], anchors[a.recorded].event, v2);
	if (!r)
		r = elapsed(&after, anchors[b.recorded].event, b.handles[b.recorded], v2);
	if (!r && ret_ms)
		*ret_ms = before + after +
			  (float)((double)(int64_t)(anchors[b.recorded].at_ns -
						    anchors[a.recorded].at_ns) /
				  (double)TD_NS_PER_MS);
	return r;
}

void td_rehome_forked(void)
{
	atomic_store(&td_unmovable_noted, 0);
	atomic_store(&inside, 0);
	atomic_store(&closed, 0);
	depth = 0;
	is_inside = false;
	first = -1;
	atomic_store(&here, -1);
	for (unsigned h = 0; h < TD_HOMES_MAX; h++) {
		atomic_store(&contexts[h], NULL);
		anchors[h] = (struct anchor){0};
		asked[h] = sms[h] = 0;
	}
	td_twins_forked();
}
