/* The backend `auto`: what it is decided by, once, and what it becomes when a library comes that speaks against it. Each case in a process of its own. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/choose.h"
#include "preload/driver.h"
#include "test.h"

#define VMM        102
#define POSIX_FD   103
#define RDMA_VMM   110
#define RDMA       116
#define DEVICES    2
#define ATTRIBUTES 128

static int attributes[DEVICES][ATTRIBUTES], devices = DEVICES, count_error;
static enum td_backend_kind used = TD_BACKEND_N;
static unsigned uses, stays;

static int get_count(int *ret)
{
	*ret = devices;
	return count_error;
}

static int get_attribute(int *ret, int attribute, int device)
{
	*ret = attributes[device][attribute];
	return 0;
}

static const struct td_driver driver = {
	.device_get_count = get_count, .device_get_attribute = get_attribute};

static void use(enum td_backend_kind kind)
{
	used = kind;
	uses++;
}

static void stay(void)
{
	stays++;
}

static void begin(uint8_t kind)
{
	for (int i = 0; i < DEVICES; i++)
		attributes[i][VMM] = attributes[i][POSIX_FD] = 1;
	td_driver_set(&driver);
	td_choose_init(kind, &(struct td_chooser){use, stay});
}

static struct td_choice choice(void)
{
	struct td_choice c;

	td_choice_get(&c);
	return c;
}

static bool chosen(uint8_t kind, uint8_t reason, const char *library)
{
	struct td_choice c = choice();

	return c.kind == kind && c.reason == reason && !strcmp(c.library, library) && used == kind;
}

static bool takes_what_the_user_says(void)
{
	for (uint8_t kind = 0; kind < TD_BACKEND_N; kind++) {
		begin(kind);
		attributes[0][VMM] = 0;
		td_choose();
		if (!chosen(kind, 0, ""))
			return false;
	}
	return uses == TD_BACKEND_N;
}

static bool is_swap_where_every_gpu_can(void)
{
	begin(TD_BACKEND_AUTO);
	if (!chosen(TD_BACKEND_PLAIN, 0, "")) /* until it is chosen */
		return false;
	td_choose();
	attributes[0][VMM] = 0; /* it is not asked again */
	td_choose();
	td_choose_look();
	return chosen(TD_BACKEND_SWAP, 0, "") && uses == 2 && !stays;
}

static bool is_plain_without(int device, int attribute)
{
	begin(TD_BACKEND_AUTO);
	attributes[device][attribute] = 0;
	td_choose();
	td_choose_look();
	return chosen(TD_BACKEND_PLAIN, TD_BACKEND_CANNOT, "") && !stays;
}

static bool is_plain_where_one_gpu_cannot(void)
{
	return is_plain_without(1, VMM);
}

static bool is_plain_where_memory_cannot_be_passed_on(void)
{
	return is_plain_without(0, POSIX_FD);
}

static bool goes_by_what_the_device_can_do_for_network_cards(void)
{
	begin(TD_BACKEND_AUTO);
	attributes[1][RDMA] = 1;
	td_choose();
	if (!chosen(TD_BACKEND_PLAIN, TD_BACKEND_CANNOT, ""))
		return false;
	begin(TD_BACKEND_AUTO);
	attributes[1][RDMA] = attributes[1][RDMA_VMM] = 1;
	td_choose();
	return choice().kind == TD_BACKEND_SWAP;
}

static bool is_plain_where_the_driver_does_not_answer(void)
{
	begin(TD_BACKEND_AUTO);
	count_error = 3;
	td_choose();
	if (!chosen(TD_BACKEND_PLAIN, TD_BACKEND_CANNOT, ""))
		return false;
	count_error = devices = 0;
	begin(TD_BACKEND_AUTO);
	td_choose();
	return chosen(TD_BACKEND_PLAIN, TD_BACKEND_CANNOT, "");
}

/* Any library will do: it is the file's name that counts. */
static bool copy_some_library(const char *path)
{
	void *handle = dlopen("libm.so.6", RTLD_NOW);
	struct link_map *map;
	char buffer[1 << 16];
	FILE *from, *to = NULL;
	size_t n;
	bool copied;

	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map))
		return false;
	from = fopen(map->l_name, "rb");
	if (from)
		to = fopen(path, "wb");
	while (from && to && (n = fread(buffer, 1, sizeof(buffer), from)) > 0)
		(void)fwrite(buffer, 1, n, to);
	copied = from && to && !ferror(from) && !ferror(to);
	if (from)
		fclose(from);
	return to && !fclose(to) && copied;
}

static bool load_into(Lmid_t space, const char *name)
{
	char directory[] = "/tmp/tandem-choose-XXXXXX", path[128];
	bool loaded;

	if (!mkdtemp(directory))
		return false;
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	loaded = copy_some_library(path) && dlmopen(space, path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	rmdir(directory);
	return loaded;
}

static bool load(const char *name)
{
	return load_into(LM_ID_BASE, name);
}

static bool is_plain_beside_a_library_that_registers(void)
{
	begin(TD_BACKEND_AUTO);
	if (!load("libibverbs-1a2b3c.so.1"))
		return false;
	td_choose();
	return chosen(TD_BACKEND_PLAIN, TD_BACKEND_REGISTERS, "libibverbs-1a2b3c.so.1");
}

static bool stays_once_such_a_library_has_come(void)
{
	begin(TD_BACKEND_AUTO);
	td_choose();
	if (!load("libverbs.so.1") || !load("xlibucp.so.0"))
		return false;
	td_choose_look();
	if (!chosen(TD_BACKEND_SWAP, 0, "") || stays)
		return false;
	if (!load("libucp.so.0"))
		return false;
	td_choose_look();
	td_choose_look();
	return chosen(TD_BACKEND_SWAP, TD_BACKEND_REGISTERS, "libucp.so.0") && stays == 1;
}

static bool is_plain_beside_one_in_another_namespace(void)
{
	begin(TD_BACKEND_AUTO);
	if (!load_into(LM_ID_NEWLM, "libfabric-77.so.1"))
		return false;
	td_choose();
	return chosen(TD_BACKEND_PLAIN, TD_BACKEND_REGISTERS, "libfabric-77.so.1");
}

static bool stays_once_one_has_come_into_another_namespace(void)
{
	begin(TD_BACKEND_AUTO);
	td_choose();
	if (!load_into(LM_ID_NEWLM, "libm-of-mine.so"))
		return false;
	td_choose_look();
	if (!chosen(TD_BACKEND_SWAP, 0, "") || stays || !load_into(LM_ID_NEWLM, "libpsm2.so.2"))
		return false;
	td_choose_look();
	return chosen(TD_BACKEND_SWAP, TD_BACKEND_REGISTERS, "libpsm2.so.2") && stays == 1;
}

static bool is_the_users_word_whatever_is_loaded(void)
{
	begin(TD_BACKEND_SWAP);
	td_choose();
	if (!load("libucp.so.0"))
		return false;
	td_choose_look();
	return chosen(TD_BACKEND_SWAP, 0, "") && !stays;
}

static bool is_chosen_anew_in_a_child(void)
{
	begin(TD_BACKEND_AUTO);
	td_choose();
	if (!load("libgdrapi.so.2"))
		return false;
	td_choose_look();
	td_choose_forked();
	if (!chosen(TD_BACKEND_PLAIN, 0, ""))
		return false;
	td_choose();
	return chosen(TD_BACKEND_PLAIN, TD_BACKEND_REGISTERS, "libgdrapi.so.2") && stays == 1;
}

static void in_child(bool (*run)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(run() ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

TEST(the_backend_takes_what_the_user_says)
{
	in_child(takes_what_the_user_says);
}

TEST(the_backend_is_swap_where_every_gpu_can)
{
	in_child(is_swap_where_every_gpu_can);
}

TEST(the_backend_is_plain_where_one_gpu_cannot)
{
	in_child(is_plain_where_one_gpu_cannot);
}

TEST(the_backend_is_plain_where_memory_cannot_be_passed_on)
{
	in_child(is_plain_where_memory_cannot_be_passed_on);
}

TEST(the_backend_goes_by_what_the_device_can_do_for_network_cards)
{
	in_child(goes_by_what_the_device_can_do_for_network_cards);
}

TEST(the_backend_is_plain_where_the_driver_does_not_answer)
{
	in_child(is_plain_where_the_driver_does_not_answer);
}

TEST(the_backend_is_plain_beside_a_library_that_registers)
{
	in_child(is_plain_beside_a_library_that_registers);
}

TEST(the_backend_stays_once_such_a_library_has_come)
{
	in_child(stays_once_such_a_library_has_come);
}

TEST(the_backend_is_plain_beside_a_library_in_another_namespace_that_registers)
{
	in_child(is_plain_beside_one_in_another_namespace);
}

TEST(the_backend_stays_once_such_a_library_has_come_into_another_namespace)
{
	in_child(stays_once_one_has_come_into_another_namespace);
}

TEST(the_backend_is_the_users_word_whatever_is_loaded)
{
	in_child(is_the_users_word_whatever_is_loaded);
}

TEST(the_backend_is_chosen_anew_in_a_child)
{
	in_child(is_chosen_anew_in_a_child);
}
