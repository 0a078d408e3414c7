/*
 * Question 26: the driver's result for a copy or a set that begins in an allocation and ends
 * outside it. Such work may fault, and a context that has faulted answers no more: a child tries
 * one after the other, and the next child goes on where it ended.
 */
#include "probe.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/objects.h"

const char probe_name[] = "beyond";
const char probe_question[] =
	"Which copies and sets that reach beyond an allocation of cuMemAlloc are refused, and "
	"when: "
	"flat, in rows, captured and as a node of a graph, small allocations and large ones, and "
	"is the padding to 512 bytes behind one part of it?";

#define PADDED    512
#define FAR       (4u << 20)
#define HOST_TYPE 1   /* CU_MEMORYTYPE_HOST */
#define RELAXED   2   /* CU_STREAM_CAPTURE_MODE_RELAXED */
#define ENOUGH_US 9e6 /* of the 15 s that it has */

static CUstream stream;
static CUcontext context;
static CUdeviceptr other; /* with room for all of them */
static void *host;        /* likewise */

/* The call that is refused, if any. */
struct outcome {
	CUresult r;
	const char *when;
};

static struct outcome copy(CUdeviceptr at, size_t n)
{
	return (struct outcome){cu.cuMemcpyDtoH_v2(host, at, n), "call"};
}

static struct outcome copy_async(CUdeviceptr at, size_t n)
{
	return (struct outcome){cu.cuMemcpyDtoDAsync_v2(other, at, n, stream), "call"};
}

static struct outcome set(CUdeviceptr at, size_t n)
{
	return (struct outcome){cu.cuMemsetD8_v2(at, 0, n), "call"};
}

/* Two rows, of which the second lies at the end. */
static struct outcome rows(CUdeviceptr at, size_t n)
{
	const struct td_copy2d two = {{.type = TD_COPY_DEVICE, .device = at, .pitch = n - 4},
		{.type = HOST_TYPE, .host = host, .pitch = 4}, 4, 2};

	return (struct outcome){cu.cuMemcpy2D_v2(&two), "call"};
}

static struct outcome launched(void *graph)
{
	struct outcome o = {CUDA_SUCCESS, "instantiation"};
	void *exec = NULL;

	o.r = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
	if (!o.r)
		o = (struct outcome){cu.cuGraphLaunch(exec, stream), "launch"};
	return o;
}

static struct outcome captured(CUdeviceptr at, size_t n)
{
	void *graph = NULL;
	struct outcome o;
	CUresult r;

	MUST(cuStreamBeginCapture_v2, stream, RELAXED);
	o = copy_async(at, n);
	r = cu.cuStreamEndCapture(stream, &graph);
	if (o.r)
		return o;
	return r ? (struct outcome){r, "end of capture"} : launched(graph);
}

static struct outcome node(CUdeviceptr at, size_t n)
{
	const struct td_copy3d row = {{.type = TD_COPY_DEVICE, .device = at},
		{.type = TD_COPY_DEVICE, .device = other}, n, 1, 1};
	void *graph = NULL, *added = NULL;
	CUresult r;

	MUST(cuGraphCreate, &graph, 0);
	r = cu.cuGraphAddMemcpyNode(&added, graph, NULL, 0, &row, context);
	return r ? (struct outcome){r, "call"} : launched(graph);
}

static const struct form {
	const char *name;
	struct outcome (*attempt)(CUdeviceptr at, size_t n);
} forms[] = {{"copy", copy}, {"asynchronous copy", copy_async}, {"rows", rows}, {"set", set},
	{"captured copy", captured}, {"copy node", node}};

#define FORMS   (sizeof(forms) / sizeof(forms[0]))
#define REACHES 5
#define EACH    (FORMS * REACHES)

/* One that ends with the allocation shows that the form itself is taken. */
static size_t reach(size_t bytes, size_t which, const char **ret_name)
{
	static const char *const names[REACHES] = {"to its end", "4 bytes beyond",
		"to the end of the padding", "4 bytes beyond the padding", "4 MiB beyond"};
	size_t padding = PADDED - bytes % PADDED;
	const size_t by[REACHES] = {0, 4, padding, padding + 4, FAR};

	*ret_name = names[which];
	return bytes + by[which];
}

static size_t large_bytes(void)
{
	return (probe_quick ? 4u << 20 : 20u << 20) + 12;
}

static size_t bytes_of(size_t attempt)
{
	return attempt < EACH ? 1000 : large_bytes();
}

/* False: the context answers no more. */
static bool say(struct outcome o)
{
	CUresult after = cu.cuCtxSynchronize();

	if (o.r)
		probe_say("refused at its %s: %s", o.when, probe_error(o.r));
	else if (after)
		probe_say("taken, then %s", probe_error(after));
	else
		probe_say("taken");
	return !after;
}

int probe_role(const char *role)
{
	size_t most = large_bytes() + FAR + PADDED;
	bool lives = true;

	probe_begin();
	MUST(cuCtxGetCurrent, &context);
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	MUST(cuMemAlloc_v2, &other, most);
	host = malloc(most);
	for (size_t i = strtoul(role, NULL, 10); host && lives && i < 2 * EACH; i++) {
		const char *name;
		CUdeviceptr at;

		MUST(cuMemAlloc_v2, &at, bytes_of(i));
		lives = say(
			forms[i % FORMS].attempt(at, reach(bytes_of(i), i % EACH / FORMS, &name)));
		(void)cu.cuMemFree_v2(at);
	}
	return 0;
}

static char text[8000];
#define ROOM 700 /* for what is said of one: a heading and a line of a child */
static size_t len;

static void note(size_t attempt, const char *what)
{
	static char last[200];
	const char *name;

	if (len + ROOM > sizeof(text))
		return;
	(void)reach(bytes_of(attempt), attempt % EACH / FORMS, &name);
	if (attempt % FORMS == 0) {
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"%s%s, %s: ", attempt ? ". " : "", attempt < EACH ? "small" : "large",
			name);
		last[0] = '\0';
	}
	/* An answer that equals the previous form's is not repeated. */
	if (strcmp(last, what))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %s",
			attempt % FORMS ? "; " : "", forms[attempt % FORMS].name, what);
	else
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, ", %s", forms[attempt % FORMS].name);
	snprintf(last, sizeof(last), "%s", what);
}

void probe_run(void)
{
	unsigned refused = 0;
	uint64_t began;

	probe_begin();
	began = probe_now_ns();
	for (size_t i = 0; i < 2 * EACH;) {
		size_t first = i;
		struct probe_child child;
		const char *line;
		char role[16];

		snprintf(role, sizeof(role), "%zu", first);
		child = probe_start(role, NULL);
		while (i < 2 * EACH && *(line = probe_line(&child))) {
			refused += !strncmp(line, "refused", 7);
			note(i++, line);
		}
		if (i == first)
			note(i++, "ends its process");
		(void)probe_end(&child, 1000);
		/* Where each one ends its context, that many would take too long. */
		while (i < 2 * EACH && probe_us_since(began) > ENOUGH_US)
			note(i++, "not asked for lack of time");
	}
	probe_value(refused, "forms", "refused");
	probe_answer("%s", text);
}
