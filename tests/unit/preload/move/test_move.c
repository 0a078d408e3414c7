/*
 * The moment of a move to another GPU, on a driver of the test's own with two GPUs: calls of other
 * threads that make objects or allocate meanwhile, and the streams that are left.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/time.h"
#include "preload/agent/moves.h"
#include "preload/link/client_internal.h"
#include "preload/move/move.h"
#include "preload/rehome/objects.h"
#include "unit/preload/hooks_world.h"

#define LIMIT   (64 * BYTES)
#define STREAMS 64
#define BOUND   (10 * TD_NS_PER_S) /* only a hang reaches it */
/* So long a call is given to come where it must not come. */
#define SHORT (20 * TD_NS_PER_MS)

struct CUctx_st {
	CUdevice device;
};
struct CUstream_st {
	CUcontext of; /* NULL: free */
};

static struct CUctx_st contexts[8];
static struct CUstream_st streams[STREAMS];
static _Atomic unsigned context_count, refused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread CUcontext stack[8];
static __thread unsigned depth;
static CUstream _Atomic capturing; /* the driver's stream on which a capture is open */
/* Was GRAPHS a reason before the capture's end was noted? */
static bool knows_graph, asks_graph;
/* Called once, in the middle of the driver's next call that makes a stream. */
static void (*_Atomic in_create)(void);
/* Called once, in the middle of the driver's next call that tells the current context. */
static void (*in_current)(void);
static _Atomic bool fails; /* the driver makes no stream on the second GPU */

/* In the place of the agent's: there is no agent here that could introduce a GPU to a daemon. */
void __wrap_td_agent_expect(unsigned slot);
void __wrap_td_agent_expect(unsigned slot)
{
	(void)slot;
}

/* -- the driver -- */

static CUresult current(CUcontext *ret)
{
	void (*meanwhile)(void) = in_current;

	in_current = NULL;
	if (asks_graph)
		knows_graph = atomic_load(&td_unmovable_noted) & TD_UNMOVABLE(GRAPHS);
	*ret = depth ? stack[depth - 1] : NULL;
	if (meanwhile)
		meanwhile();
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	if (depth == 8)
		abort();
	stack[depth++] = context;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *ret)
{
	if (!depth)
		abort();
	*ret = stack[--depth];
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext context)
{
	depth = 1;
	stack[0] = context;
	return CUDA_SUCCESS;
}

static CUresult create(CUcontext *ret, unsigned flags, CUdevice device)
{
	(void)flags;
	*ret = &contexts[atomic_fetch_add(&context_count, 1)];
	(*ret)->device = device;
	return push(*ret);
}

static CUresult device_of(CUdevice *ret)
{
	*ret = depth ? stack[depth - 1]->device : 0;
	return depth ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult two(int *ret)
{
	*ret = 2;
	return CUDA_SUCCESS;
}

static CUresult attribute(int *ret, int which, CUdevice device)
{
	(void)device;
	*ret = which != TD_CUDA_ATTRIBUTE_MPS;
	return CUDA_SUCCESS;
}

static CUresult name(char *ret, int len, CUdevice device)
{
	(void)device;
	snprintf(ret, (size_t)len, "one kind");
	return CUDA_SUCCESS;
}

static CUresult make_stream(CUstream *ret, unsigned flags)
{
	void (*meanwhile)(void) = atomic_exchange(&in_create, NULL);
	unsigned i = 0;

	(void)flags;
	if (!depth || (atomic_load(&fails) && stack[depth - 1]->device))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (meanwhile)
		meanwhile();
	pthread_mutex_lock(&lock);
	while (streams[i].of)
		i++;
	streams[i].of = stack[depth - 1];
	pthread_mutex_unlock(&lock);
	*ret = &streams[i];
	return CUDA_SUCCESS;
}

static CUresult make_stream_of(CUstream *ret, unsigned flags, int priority)
{
	(void)priority;
	return make_stream(ret, flags);
}

/* The fake refuses a thread without a context, as the driver does. */
static CUresult end_stream(CUstream stream)
{
	if (!depth) {
		atomic_fetch_add(&refused, 1);
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (!stream->of)
		abort();
	stream->of = NULL;
	return CUDA_SUCCESS;
}

/* The fake takes no stream of another context than the current one. */
static CUresult flags_of(CUstream stream, unsigned *ret)
{
	*ret = 0;
	return depth && stream->of == stack[depth - 1] ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The fake takes no stream of another context than the current one. */
static CUresult begin_capture(CUstream stream, int mode)
{
	(void)mode;
	if (!depth || stream->of != stack[depth - 1])
		return CUDA_ERROR_INVALID_HANDLE;
	atomic_store(&capturing, stream);
	return CUDA_SUCCESS;
}

static CUresult end_capture(CUstream stream, void **ret)
{
	static int graph;

	if (atomic_load(&capturing) != stream)
		return CUDA_ERROR_ILLEGAL_STATE;
	atomic_store(&capturing, NULL);
	asks_graph = true;
	*ret = &graph;
	return CUDA_SUCCESS;
}

static CUcontext reaching; /* the context that has peer access */

static CUresult enable_peer(CUcontext peer, unsigned flags)
{
	(void)peer;
	(void)flags;
	reaching = depth ? stack[depth - 1] : NULL;
	return CUDA_SUCCESS;
}

static CUresult disable_peer(CUcontext peer)
{
	(void)peer;
	reaching = NULL;
	return CUDA_SUCCESS;
}

static unsigned stream_count(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < STREAMS; i++)
		n += streams[i].of != NULL;
	return n;
}

/* -- the program, in its own context on the first GPU -- */

static void begin(void)
{
	static struct td_real driver;
	static bool once;
	CUcontext own;

	if (once)
		return;
	once = true;
	vmm_begin(LIMIT, LIMIT);
	td_real.cuCtxGetCurrent = current;
	td_real.cuCtxSetCurrent = set_current;
	td_real.cuCtxPushCurrent_v2 = push;
	td_real.cuCtxPopCurrent_v2 = pop;
	td_real.cuCtxCreate_v2 = create;
	td_real.cuCtxGetDevice = device_of;
	td_real.cuDeviceGetCount = two;
	td_real.cuDeviceGetAttribute = attribute;
	td_real.cuDeviceGetName = name;
	td_real.cuStreamCreate = make_stream;
	td_real.cuStreamCreateWithPriority = make_stream_of;
	td_real.cuStreamDestroy_v2 = end_stream;
	td_real.cuStreamGetFlags = flags_of;
	td_real.cuStreamBeginCapture_v2 = begin_capture;
	td_real.cuStreamEndCapture = end_capture;
	td_real.cuCtxEnablePeerAccess = enable_peer;
	td_real.cuCtxDisablePeerAccess = disable_peer;
	hooks_begin(&td_backend_swap);
	driver = td_real;
	td_true = &driver;
	td_rehome_load();
	CHECK_EQ(create(&own, 0, 0), CUDA_SUCCESS);
	CHECK_EQ(td_context_use(), 0);
}

static void use_own_context(void)
{
	(void)set_current(&contexts[0]);
	td_rehome_sync();
}

static CUdevice here(void)
{
	return td_rehome_here() > 0 ? 1 : 0;
}

static bool prepare(uint64_t *ret_reasons)
{
	uint8_t uuid[16];
	unsigned slot;
	bool is;

	depth = 0; /* as in the library's own threads */
	memset(uuid, 1 + !here(), sizeof(uuid));
	is = td_mover.prepare(uuid, 0, &slot, ret_reasons);
	CHECK_EQ(depth, 0);
	return is;
}

static void must_prepare(void)
{
	uint64_t reasons = 0;

	CHECK(prepare(&reasons));
	CHECK_EQ(reasons, 0);
}

static void must_not_move(uint64_t why)
{
	uint64_t reasons = 0;

	CHECK(!prepare(&reasons));
	CHECK_EQ(reasons, why);
}

static uint64_t go(void)
{
	struct td_moved_to to = {0};
	bool is = td_mover.go(LIMIT, &to);

	if (!is)
		td_mover.cancel();
	CHECK_EQ(is, !to.reasons);
	return to.reasons;
}

static void *twin_of(CUstream stream, int home)
{
	bool known;

	return td_twin_at(TD_TWIN_STREAM, stream, home, &known);
}

/* -- another thread of the program -- */

static pthread_t other;
static CUstream _Atomic made;
static _Atomic bool has_begun, has_returned, goes_on;
static _Atomic int other_result;

static void *make_one(void *arg)
{
	CUstream stream = NULL;

	(void)arg;
	use_own_context();
	atomic_store(&has_begun, true);
	atomic_store(&other_result, td_real.cuStreamCreate(&stream, 0));
	atomic_store(&made, stream);
	atomic_store(&has_returned, true);
	return NULL;
}

static void begin_other(void *(*run)(void *arg))
{
	atomic_store(&made, NULL);
	atomic_store(&has_begun, false);
	atomic_store(&has_returned, false);
	atomic_store(&goes_on, false);
	CHECK(!pthread_create(&other, NULL, run, NULL));
}

static void end_other(void)
{
	CHECK(!pthread_join(other, NULL));
	CHECK_EQ(atomic_load(&other_result), CUDA_SUCCESS);
}

/* Returns false if it does not come. Any thread may call it. */
static bool comes(_Atomic bool *is)
{
	uint64_t until_ns = td_time_now_ns() + BOUND;

	while (!atomic_load(is) && td_time_now_ns() < until_ns)
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS / 10);
	return atomic_load(is);
}

static void end(CUstream stream)
{
	use_own_context();
	CHECK_EQ(td_real.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

static _Atomic bool is_in_driver;

static void stay_in_driver(void)
{
	atomic_store(&is_in_driver, true);
	(void)comes(&goes_on);
}

TEST(a_call_that_makes_an_object_is_waited_for)
{
	begin();
	must_prepare();
	atomic_store(&is_in_driver, false);
	atomic_store(&in_create, stay_in_driver);
	begin_other(make_one);
	CHECK(comes(&is_in_driver));
	CHECK_EQ(go(), TD_UNMOVABLE(BUSY));
	CHECK_EQ(here(), 0);
	atomic_store(&goes_on, true);
	end_other();
	must_prepare();
	CHECK_EQ(go(), 0);
	CHECK_EQ(here(), 1);
	end(atomic_load(&made));
	CHECK_EQ(stream_count(), 0);
}

static _Atomic bool came_too_early;
static void *(*tries)(void *arg);

/* In the middle of the move, when it makes the twin of a stream. */
static void let_other_try(void)
{
	uint64_t until_ns;

	begin_other(tries);
	CHECK(comes(&has_begun));
	until_ns = td_time_now_ns() + SHORT;
	while (!atomic_load(&has_returned) && td_time_now_ns() < until_ns)
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS / 10);
	atomic_store(&came_too_early, atomic_load(&has_returned));
}

TEST(what_is_made_in_the_middle_of_a_move_is_made_on_the_new_gpu)
{
	CUdevice from = here();
	CUstream stream;

	begin();
	must_prepare();
	use_own_context();
	CHECK_EQ(td_real.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	depth = 0;
	tries = make_one;
	atomic_store(&in_create, let_other_try);
	CHECK_EQ(go(), 0);
	end_other();
	CHECK(!atomic_load(&came_too_early));
	CHECK_EQ(here(), !from);
	CHECK_EQ(atomic_load(&made)->of->device, !from);
	end(stream);
	end(atomic_load(&made));
	CHECK_EQ(stream_count(), 0);
}

TEST(what_was_made_since_the_preparation_has_its_twin_before_the_program_goes_on)
{
	CUdevice from = here();
	CUstream before, since;

	begin();
	use_own_context();
	CHECK_EQ(td_real.cuStreamCreate(&before, 0), CUDA_SUCCESS);
	must_prepare();
	CHECK(twin_of(before, !from));
	use_own_context();
	CHECK_EQ(td_real.cuStreamCreate(&since, 0), CUDA_SUCCESS);
	CHECK(!twin_of(since, !from));
	depth = 0;
	CHECK_EQ(go(), 0);
	CHECK_EQ(here(), !from);
	CHECK(twin_of(since, !from));
	CHECK_EQ(((CUstream)twin_of(since, !from))->of->device, !from);
	end(before);
	end(since);
	CHECK_EQ(stream_count(), 0);
}

TEST(where_such_a_twin_cannot_be_made_the_program_stays)
{
	CUstream since;

	begin();
	if (here()) {
		must_prepare();
		CHECK_EQ(go(), 0);
	}
	must_prepare();
	use_own_context();
	CHECK_EQ(td_real.cuStreamCreate(&since, 0), CUDA_SUCCESS);
	depth = 0;
	atomic_store(&fails, true);
	CHECK_EQ(go(), TD_UNMOVABLE(NO_CONTEXT));
	CHECK_EQ(here(), 0);
	CHECK(!twin_of(since, 1));
	atomic_store(&fails, false);
	must_prepare();
	CHECK_EQ(go(), 0);
	CHECK_EQ(here(), 1);
	end(since);
}

static void switch_now(void)
{
	td_rehome_switch(!here());
}

/* Its context was set for the one GPU, and its handles would be exchanged for the other's. */
TEST(a_query_in_the_middle_of_which_the_program_moves_is_one_of_the_new_gpu)
{
	CUdevice from;
	CUstream stream;
	unsigned flags;

	begin();
	use_own_context();
	CHECK_EQ(td_real.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	must_prepare();
	CHECK_EQ(go(), 0);
	from = here();
	use_own_context();
	in_current = switch_now;
	CHECK_EQ(td_real.cuStreamGetFlags(stream, &flags), CUDA_SUCCESS);
	CHECK(!in_current);
	CHECK_EQ(here(), !from);
	switch_now();
	end(stream);
}

TEST(no_preparation_leaves_a_stream_behind)
{
	unsigned before = stream_count();

	begin();
	for (int i = 0; i < 3; i++) {
		must_prepare();
		td_mover.cancel();
	}
	CHECK_EQ(stream_count(), before);
	must_prepare();
	CHECK_EQ(go(), 0);
	CHECK_EQ(stream_count(), before);
	CHECK_EQ(atomic_load(&refused), 0);
}

/* -- calls that make the program unmovable -- */

static CUstream named;

static void *capture(void *arg)
{
	(void)arg;
	use_own_context();
	atomic_store(&has_begun, true);
	atomic_store(&other_result, td_hook_cuStreamBeginCapture_v2(named, 0));
	atomic_store(&has_returned, true);
	return NULL;
}

/* On the old one its end would be that of no capture, and its launches would run. */
TEST(a_capture_that_begins_in_the_middle_of_a_move_begins_on_the_new_gpu)
{
	CUdevice from = here();
	void *graph;

	begin();
	must_prepare();
	use_own_context();
	CHECK_EQ(td_real.cuStreamCreate(&named, 0), CUDA_SUCCESS);
	depth = 0;
	tries = capture;
	atomic_store(&in_create, let_other_try);
	CHECK_EQ(go(), 0);
	end_other();
	CHECK(!atomic_load(&came_too_early));
	CHECK_EQ(here(), !from);
	CHECK_EQ(atomic_load(&capturing), twin_of(named, here()));
	must_not_move(TD_UNMOVABLE(CAPTURE));
	use_own_context();
	CHECK_EQ(td_hook_cuStreamEndCapture(named, &graph), CUDA_SUCCESS);
	/* No move may come between the end of the capture and the graph. */
	CHECK(knows_graph);
	asks_graph = false;
	must_not_move(TD_UNMOVABLE(GRAPHS));
	atomic_store(&td_unmovable_noted, 0);
	end(named);
}

static void *reach(void *arg)
{
	(void)arg;
	use_own_context();
	atomic_store(&has_begun, true);
	atomic_store(&other_result, td_hook_cuCtxEnablePeerAccess(&contexts[7], 0));
	atomic_store(&has_returned, true);
	return NULL;
}

TEST(peer_access_that_is_enabled_in_the_middle_of_a_move_is_that_of_the_new_gpu)
{
	CUdevice from = here();

	begin();
	must_prepare();
	use_own_context();
	CHECK_EQ(td_real.cuStreamCreate(&named, 0), CUDA_SUCCESS);
	depth = 0;
	tries = reach;
	atomic_store(&in_create, let_other_try);
	CHECK_EQ(go(), 0);
	end_other();
	CHECK(!atomic_load(&came_too_early));
	CHECK_EQ(reaching, &contexts[!from]);
	must_not_move(TD_UNMOVABLE(PEERS));
	use_own_context();
	CHECK_EQ(td_hook_cuCtxDisablePeerAccess(&contexts[7]), CUDA_SUCCESS);
	atomic_store(&td_unmovable_noted, 0);
	end(named);
}

/* -- an allocation that waits for the daemon -- */

static _Atomic CUdeviceptr address;

static void *allocate_one(void *arg)
{
	CUdeviceptr at = 0;

	(void)arg;
	use_own_context();
	atomic_store(&other_result, td_hook_cuMemAlloc_v2(&at, BYTES));
	atomic_store(&address, at);
	return NULL;
}

/* Takes the question as the agent does. Returns its slot. */
static unsigned await_question(uint32_t *ret_ticket)
{
	uint64_t until_ns = td_time_now_ns() + BOUND, bytes;
	enum td_mobility mobility;

	while (td_time_now_ns() < until_ns) {
		for (unsigned slot = 0; slot < 2; slot++)
			if (td_client_take_need(slot, ret_ticket, &bytes, &mobility))
				return slot;
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS / 10);
	}
	CHECK(td_time_now_ns() < until_ns);
	return 0;
}

TEST(an_allocation_that_waits_for_the_daemon_delays_no_move_and_asks_where_it_is_then)
{
	uint64_t began_ns;
	uint32_t ticket;
	unsigned slot;

	begin();
	must_prepare();
	atomic_store(&address, 0);
	td_client_connected(true);
	begin_other(allocate_one);
	slot = await_question(&ticket);
	CHECK_EQ(slot, here());
	began_ns = td_time_now_ns();
	CHECK_EQ(go(), 0);
	CHECK(td_time_now_ns() - began_ns < 400 * TD_NS_PER_MS);
	/* An answer to the earlier question is of no use. */
	td_client_answer(slot, ticket, TD_ANSWER_OK);
	CHECK_EQ(await_question(&ticket), !slot);
	CHECK_EQ(atomic_load(&address), 0);
	td_client_answer(!slot, ticket, TD_ANSWER_OK);
	end_other();
	CHECK(atomic_load(&address));
}

/* -- whether it can move -- */

static unsigned told;

static void hear(const struct td_msg *msg)
{
	told += msg->type == TD_MSG_TYPE_movable;
}

TEST(the_daemon_is_told_at_once_that_a_program_can_move_and_again_after_a_failure)
{
	const struct td_msg_move order = {.stage = TD_MOVE_GO, .number = 1};

	begin();
	td_moves_set_mover(&td_mover);
	td_moves_step(hear, false);
	CHECK_EQ(told, 1);
	td_moves_step(hear, false);
	CHECK_EQ(told, 1);
	/* Nothing is prepared. The daemon may take the reason as one that lasts. */
	td_moves_asked(&order, hear, td_time_now_ns());
	td_moves_step(hear, false);
	CHECK_EQ(told, 2);
}
