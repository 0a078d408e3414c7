/* See choose.h. Who waits for the choice waits for a few attributes of the driver, which wait for nobody. */
#include "preload/choose.h"

#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cuda/movable.h"
#include "preload/driver.h"
#include "preload/loaded.h"
#include "preload/lock.h"
#include "preload/thread.h"

enum state {
	STATE_GIVEN,
	STATE_OPEN,
	STATE_PLAIN,
	STATE_MOVES,
	STATE_STAYS,
};

/*
 * They register memory with network cards and disks by its address, or are what others do that with. By the beginnings of the files' names: wheels
 * carry copies with a hash behind it.
 */
static const char *const registering[] = {
	"libibverbs", "libgdrapi", "libfabric", "libucp", "libpsm2", "libcufile"};

static struct td_lock lock = TD_LOCK_INIT(TD_RANK_CHOOSE);
/* glibc leaves its own lock of the list as it is in a child of fork: taken by a thread that is not there, it would keep the child from dlopen for ever. */
static struct td_lock list_lock = TD_LOCK_INIT(TD_RANK_LIST);
static _Atomic int state;
static struct td_chooser chooser;
static uint8_t given;
/* Written under the lock before the state that they are of, and not after. */
static uint8_t reason;
static char library[64];
/* Agent, and the thread that chooses before there is anything to look for. */
static unsigned long long seen_adds;

struct search {
	unsigned long long adds;
	bool only_adds;
	bool found;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool registers(const char *name)
{
	for (size_t i = 0; i < sizeof(registering) / sizeof(registering[0]); i++)
		if (!strncmp(name, registering[i], strlen(registering[i])))
			return true;
	return false;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;
	const char *name = info->dlpi_name ? base_name(info->dlpi_name) : "";

	if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof(info->dlpi_adds))
		search->adds = info->dlpi_adds;
	if (search->only_adds)
		return 1;
	if (registers(name)) {
		search->found = true;
		snprintf(library, sizeof(library), "%s", name);
	}
	return search->found;
}

void td_choose_hold_forks(void)
{
	td_lock_take(&list_lock);
}

void td_choose_release_forks(void)
{
	td_lock_drop(&list_lock);
}

static void look(struct search *search)
{
	td_choose_hold_forks();
	dl_iterate_phdr(look_at, search);
	td_choose_release_forks();
}

/* With the lock. Is one loaded, into whatever namespace? Then `library` says which. By their names here first: what is mapped may have another one, behind a link. */
static bool is_registering(void)
{
	struct search search = {0};

	look(&search);
	seen_adds = search.adds;
	return search.found || td_loaded_find(registers, library, sizeof(library));
}

/* Has anything been loaded since? The counter is of all namespaces. */
static bool is_news(void)
{
	struct search search = {.only_adds = true};

	look(&search);
	return !search.adds || search.adds != seen_adds;
}

static bool all_can_move(void)
{
	const struct td_driver *driver = td_driver();
	int count = 0;

	if (!driver || driver->device_get_count(&count) || count <= 0)
		return false;
	for (int device = 0; device < count; device++)
		if (!td_is_movable(driver->device_get_attribute, device))
			return false;
	return true;
}

void td_choose_init(uint8_t kind, const struct td_chooser *by)
{
	chooser = *by;
	given = kind;
	reason = TD_BACKEND_NO_REASON;
	library[0] = '\0';
	atomic_store(&state, kind == TD_BACKEND_AUTO ? STATE_OPEN : STATE_GIVEN);
	chooser.use(kind == TD_BACKEND_AUTO ? TD_BACKEND_PLAIN : (enum td_backend_kind)kind);
}

void td_choose(void)
{
	int cancel;

	if (atomic_load_explicit(&state, memory_order_acquire) != STATE_OPEN)
		return;
	cancel = td_thread_no_cancel();
	td_lock_take(&lock);
	if (atomic_load(&state) == STATE_OPEN) {
		if (!all_can_move())
			reason = TD_BACKEND_CANNOT;
		else if (is_registering())
			reason = TD_BACKEND_REGISTERS;
		if (!reason)
			chooser.use(TD_BACKEND_SWAP);
		atomic_store(&state, reason ? STATE_PLAIN : STATE_MOVES);
	}
	td_lock_drop(&lock);
	td_thread_may_cancel(cancel);
}

void td_choice_get(struct td_choice *ret)
{
	memset(ret, 0, sizeof(*ret));
	switch ((enum state)atomic_load(&state)) {
	case STATE_GIVEN: ret->kind = given; return;
	case STATE_OPEN: ret->kind = TD_BACKEND_PLAIN; return;
	case STATE_MOVES: ret->kind = TD_BACKEND_SWAP; return;
	case STATE_PLAIN: ret->kind = TD_BACKEND_PLAIN; break;
	case STATE_STAYS: ret->kind = TD_BACKEND_SWAP; break;
	}
	ret->reason = reason;
	memcpy(ret->library, library, sizeof(library));
}

void td_choose_look(void)
{
	bool stays;

	if (atomic_load_explicit(&state, memory_order_relaxed) != STATE_MOVES)
		return;
	td_lock_take(&lock);
	stays = is_news() && is_registering();
	if (stays)
		reason = TD_BACKEND_REGISTERS;
	td_lock_drop(&lock);
	if (!stays)
		return;
	chooser.stay();
	atomic_store(&state, STATE_STAYS);
}

void td_choose_before_fork(void)
{
	td_choose_hold_forks();
}

void td_choose_after_fork(void)
{
	td_choose_release_forks();
}

void td_choose_forked(void)
{
	td_lock_drop(&list_lock); /* taken before the fork, by this thread */
	td_lock_reset(&lock);
	td_choose_init(given, &(struct td_chooser){chooser.use, chooser.stay});
}
