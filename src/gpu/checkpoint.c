/*
 * Implements checkpoint.h. The few CUDA functions are declared here, because the daemon is built
 * without CUDA's headers.
 */
#include "gpu/checkpoint.h"

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"

#define NOBODY        65534
#define OUT_OF_MEMORY 2
/* Restoring on other GPUs came with CUDA 13.0 (driver 580). */
#define REMAP_VERSION 13000
#define ARGUMENTS     5

/* CUprocessState */
enum state {
	RUNNING,
	LOCKED,
	CHECKPOINTED,
};

/* All arguments are 64 bytes, of which those that are not named must be zero (cuda.h). */
struct lock_arguments {
	unsigned timeout_ms, reserved0;
	uint64_t reserved[7];
};

struct pair {
	uint8_t from[16], to[16];
};

struct restore_arguments {
	const struct pair *pairs;
	unsigned count;
	char reserved[44];
	uint64_t reserved1;
};

_Static_assert(sizeof(struct lock_arguments) == 64 && sizeof(struct restore_arguments) == 64,
	"CUcheckpointLockArgs and CUcheckpointRestoreArgs of cuda.h");

static struct {
	int (*init)(unsigned flags);
	int (*version)(int *ret);
	int (*state)(int pid, int *ret);
	int (*lock)(int pid, struct lock_arguments *arguments);
	int (*save)(int pid, void *arguments);
	int (*restore)(int pid, struct restore_arguments *arguments);
	int (*unlock)(int pid, void *arguments);
} cuda;

static const struct {
	const char *name;
	void **call;
	bool is_old; /* in every driver */
} calls[] = {
	{"cuInit", (void **)&cuda.init, true},
	{"cuDriverGetVersion", (void **)&cuda.version, true},
	{"cuCheckpointProcessGetState", (void **)&cuda.state, false},
	{"cuCheckpointProcessLock", (void **)&cuda.lock, false},
	{"cuCheckpointProcessCheckpoint", (void **)&cuda.save, false},
	{"cuCheckpointProcessRestore", (void **)&cuda.restore, false},
	{"cuCheckpointProcessUnlock", (void **)&cuda.unlock, false},
};

char *td_checkpoint_hex(char ret[TD_CHECKPOINT_HEX], const uint8_t uuid[16])
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < 16; i++) {
		ret[2 * i] = digits[uuid[i] >> 4];
		ret[2 * i + 1] = digits[uuid[i] & 15];
	}
	ret[32] = '\0';
	return ret;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int td_checkpoint_unhex(const char *text, uint8_t ret[16])
{
	if (strlen(text) != TD_CHECKPOINT_HEX - 1)
		return -EINVAL;
	for (unsigned i = 0; i < 16; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

static enum td_checkpoint_end load(void)
{
	void *library;

	/* The helper needs no GPU of its own, and the UUIDs are those of the whole machine. */
	(void)unsetenv("CUDA_VISIBLE_DEVICES");
	library = dlopen("libcuda.so.1", RTLD_NOW);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		*calls[i].call = library ? dlsym(library, calls[i].name) : NULL;
		if (!*calls[i].call)
			return calls[i].is_old ? TD_CHECKPOINT_NO_DRIVER : TD_CHECKPOINT_TOO_OLD;
	}
	return cuda.init(0) ? TD_CHECKPOINT_NO_DRIVER : TD_CHECKPOINT_DONE;
}

static void say(enum td_checkpoint_step step)
{
	const char byte = (char)step;

	(void)!write(TD_CHECKPOINT_FD, &byte, 1);
}

static pid_t parent;

static bool is_orphan(void)
{
	return getppid() != parent;
}

static bool become(uid_t uid)
{
	if (geteuid() || !uid)
		return true;
	return !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	       !setresuid(uid, uid, uid);
}

static enum td_checkpoint_end save(int pid, unsigned timeout_ms)
{
	struct lock_arguments lock = {.timeout_ms = timeout_ms};
	uint64_t zero[8] = {0};

	if (cuda.lock(pid, &lock))
		return TD_CHECKPOINT_NO_LOCK;
	if (!is_orphan() && !cuda.save(pid, zero))
		return TD_CHECKPOINT_DONE;
	memset(zero, 0, sizeof(zero));
	(void)cuda.unlock(pid, zero);
	return TD_CHECKPOINT_REFUSED;
}

static enum td_checkpoint_end unlock(int pid)
{
	uint64_t zero[8] = {0};

	return cuda.unlock(pid, zero) ? TD_CHECKPOINT_NOT_BACK : TD_CHECKPOINT_DONE;
}

/*
 * Undoes what the driver's state shows to be done. So it also frees a process that an earlier
 * daemon or helper has left locked or checkpointed. A process whose lock is still under way counts
 * as running: unless it is unlocked, it would be locked for good a moment later.
 */
static enum td_checkpoint_end back(int pid)
{
	struct restore_arguments same = {0};
	uint64_t zero[8] = {0};
	int state, r;

	if (cuda.state(pid, &state))
		return TD_CHECKPOINT_NOT_BACK;
	if (state == RUNNING)
		return cuda.unlock(pid, zero) ? TD_CHECKPOINT_NOT_SAVED : TD_CHECKPOINT_UNLOCKED;
	r = state == CHECKPOINTED ? cuda.restore(pid, &same) : 0;
	if (r)
		return r == OUT_OF_MEMORY ? TD_CHECKPOINT_NO_ROOM : TD_CHECKPOINT_NOT_BACK;
	r = unlock(pid);
	return state == LOCKED && !r ? TD_CHECKPOINT_UNLOCKED : (enum td_checkpoint_end)r;
}

static enum td_checkpoint_end save_only(int pid, unsigned timeout_ms)
{
	enum td_checkpoint_end end = save(pid, timeout_ms);

	return !end && is_orphan() ? back(pid) : end;
}

static enum td_checkpoint_end move(
	int pid, unsigned timeout_ms, const struct pair *pairs, unsigned count)
{
	struct restore_arguments there = {.pairs = pairs, .count = count};
	uint64_t zero[8] = {0};
	enum td_checkpoint_end end, undone;
	int version = 0, r;

	if (cuda.version(&version) || version < REMAP_VERSION)
		return TD_CHECKPOINT_NO_REMAP;
	end = save(pid, timeout_ms);
	if (end)
		return end;
	say(TD_CHECKPOINT_THERE);
	r = is_orphan() ? -1 : cuda.restore(pid, &there);
	/* The pairs exchange two GPUs, so the same ones lead back. */
	if (!r && is_orphan() && !cuda.save(pid, zero))
		r = cuda.restore(pid, &there);
	if (!r)
		return unlock(pid);
	say(TD_CHECKPOINT_RETURNS);
	undone = back(pid);
	if (undone)
		return undone;
	return r == OUT_OF_MEMORY ? TD_CHECKPOINT_NO_ROOM : TD_CHECKPOINT_NOT_MOVED;
}

static bool read_pairs(int argc, char **argv, struct pair *ret)
{
	if (argc % 2 || argc > 2 * TD_CHECKPOINT_PAIRS_MAX)
		return false;
	for (int i = 0; i < argc / 2; i++)
		if (td_checkpoint_unhex(argv[2 * i], ret[i].from) ||
			td_checkpoint_unhex(argv[2 * i + 1], ret[i].to))
			return false;
	return true;
}

enum td_checkpoint_end td_checkpoint_main(int argc, char **argv)
{
	struct pair pairs[TD_CHECKPOINT_PAIRS_MAX];
	uint64_t what, pid, uid, timeout_ms, daemon;
	enum td_checkpoint_end end;

	if (argc < ARGUMENTS || td_parse_u64(argv[0], 0, TD_CHECKPOINT_N - 1, &what, NULL) ||
		td_parse_u64(argv[1], 1, INT32_MAX, &pid, NULL) ||
		td_parse_u64(argv[2], 0, UINT32_MAX, &uid, NULL) ||
		td_parse_u64(argv[3], 0, UINT32_MAX, &timeout_ms, NULL) ||
		td_parse_u64(argv[4], 1, INT32_MAX, &daemon, NULL) ||
		!read_pairs(argc - ARGUMENTS, argv + ARGUMENTS, pairs) || !become((uid_t)uid))
		return TD_CHECKPOINT_NO_DRIVER;
	parent = (pid_t)daemon;
	end = load();
	if (end)
		return end;
	switch ((enum td_checkpoint)what) {
	case TD_CHECKPOINT_SAVE: return save_only((int)pid, (unsigned)timeout_ms);
	case TD_CHECKPOINT_BACK: return back((int)pid);
	case TD_CHECKPOINT_MOVE:
		return move(
			(int)pid, (unsigned)timeout_ms, pairs, (unsigned)(argc - ARGUMENTS) / 2);
	case TD_CHECKPOINT_N: break;
	}
	return TD_CHECKPOINT_NO_DRIVER;
}
