/* Question 6: what may be done while another stream captures. */
#include "probe.h"

#include <pthread.h>

const char probe_name[] = "capture";
const char probe_question[] =
	"What happens to record, query, synchronise and allocation while another stream captures, "
	"in each capture mode, on the same thread and on another?";

static CUcontext context;
static CUstream other;
static char text[6000];
static size_t len;

static void attempt(const char *what, CUresult r)
{
	len += (size_t)snprintf(
		text + len, sizeof(text) - len, " %s: %s;", what, r ? probe_error(r) : "allowed");
}

static void *try_all(void *arg)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr at = 0;
	CUevent event;

	(void)cu.cuCtxSetCurrent(context);
	if (arg)
		(void)cu.cuThreadExchangeStreamCaptureMode(&mode);
	attempt("event create", cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	attempt("record", cu.cuEventRecord(event, other));
	attempt("query", cu.cuEventQuery(event));
	attempt("stream synchronise", cu.cuStreamSynchronize(other));
	attempt("context synchronise", cu.cuCtxSynchronize());
	attempt("allocation", cu.cuMemAlloc_v2(&at, 4096));
	if (at)
		attempt("free", cu.cuMemFree_v2(at));
	if (arg)
		(void)cu.cuThreadExchangeStreamCaptureMode(&mode);
	return NULL;
}

void probe_run(void)
{
	static const char *const modes[] = {"global", "thread-local", "relaxed"};
	static const char *const places[] = {
		"same thread", "another thread", "another thread in relaxed mode"};
	CUstream stream;

	probe_begin();
	MUST(cuCtxGetCurrent, &context);
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	MUST(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	for (int mode = 0; mode < 3; mode++) {
		for (int place = 0; place < 3; place++) {
			pthread_t thread;
			void *graph = NULL;
			CUresult r;

			MUST(cuStreamBeginCapture_v2, stream, mode);
			len += (size_t)snprintf(text + len, sizeof(text) - len, " [%s, %s]",
				modes[mode], places[place]);
			if (!place) {
				(void)try_all(NULL);
			} else if (!pthread_create(
					   &thread, NULL, try_all, place == 2 ? text : NULL)) {
				pthread_join(thread, NULL);
			}
			r = cu.cuStreamEndCapture(stream, &graph);
			attempt("the capture", r);
			if (graph)
				(void)cu.cuGraphDestroy(graph);
			if (len + 400 > sizeof(text))
				len = sizeof(text) - 400; /* what came last is overwritten */
		}
	}
	probe_answer("%s", text);
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
