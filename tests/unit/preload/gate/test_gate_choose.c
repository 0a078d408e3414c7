/*
 * The backend `auto`: the facts that decide it, once, and the change when a device is opened that
 * excludes it. Each case runs in a process of its own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/base/settings.h"
#include "preload/driver/choose.h"
#include "preload/driver/driver.h"
#include "test.h"

#define VMM        102
#define POSIX_FD   103
#define RDMA       116
#define DEVICES    2
#define ATTRIBUTES 128

static int attributes[DEVICES][ATTRIBUTES], devices = DEVICES, count_error;
static enum td_backend_kind used = TD_BACKEND_N;
static unsigned uses, stays;
static char opened[96];

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

static bool chosen(uint8_t kind, uint8_t reason, const char *device)
{
	struct td_choice c = choice();

	return c.kind == kind && c.reason == reason && !strcmp(c.device, device) && used == kind;
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

/* GPUs for data centres can be reached by network cards: that alone says nothing of a program. */
static bool is_swap_where_network_cards_reach_other_memory_alone(void)
{
	begin(TD_BACKEND_AUTO);
	attributes[1][RDMA] = 1;
	td_choose();
	return chosen(TD_BACKEND_SWAP, 0, "");
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

/* Any file will do: it is the path that counts. The file is there for as long as it is open. */
static bool open_device(const char *path)
{
	char root[] = "/tmp/tandem-choose-XXXXXX", directory[64], full[192];
	int fd;

	if (!mkdtemp(root))
		return false;
	snprintf(directory, sizeof(directory), "%s/dev", root);
	mkdir(directory, 0700);
	snprintf(full, sizeof(full), "%s/dev/infiniband", root);
	mkdir(full, 0700);
	snprintf(full, sizeof(full), "%s%s", root, path);
	fd = open(full, O_RDWR | O_CREAT, 0600);
	unlink(full);
	snprintf(full, sizeof(full), "%s/dev/infiniband", root);
	rmdir(full);
	rmdir(directory);
	rmdir(root);
	snprintf(opened, sizeof(opened), "%.40s%s", root, path);
	return fd >= 0;
}

static bool chosen_for_what_is_open(uint8_t kind)
{
	struct td_choice c = choice();

	return c.kind == kind && c.reason == TD_BACKEND_REGISTERS && used == kind &&
	       !strncmp(c.device, opened, strlen(opened));
}

static bool is_plain_beside_a_device_that_registers(void)
{
	begin(TD_BACKEND_AUTO);
	if (!open_device("/dev/infiniband/uverbs3"))
		return false;
	td_choose();
	return chosen_for_what_is_open(TD_BACKEND_PLAIN);
}

static bool is_swap_beside_other_devices(void)
{
	begin(TD_BACKEND_AUTO);
	if (!open_device("/dev/nvidia0") || !open_device("/dev/infiniband/rdma_cm") ||
		!open_device("/dev/gdr"))
		return false;
	td_choose();
	return chosen(TD_BACKEND_SWAP, 0, "");
}

/* As PyTorch does, whose wheels load it in every process. */
static bool is_swap_beside_a_library_that_could(void)
{
	void *at;
	int fd;

	begin(TD_BACKEND_AUTO);
	fd = memfd_create("libcufile.so.0", 0);
	if (fd < 0 || ftruncate(fd, 4096))
		return false;
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	td_choose();
	td_choose_look();
	return at != MAP_FAILED && chosen(TD_BACKEND_SWAP, 0, "") && !stays;
}

static bool stays_once_such_a_device_is_open(void)
{
	begin(TD_BACKEND_AUTO);
	td_choose();
	td_choose_look();
	if (!chosen(TD_BACKEND_SWAP, 0, "") || stays || !open_device("/dev/nvidia-fs15"))
		return false;
	td_choose_look();
	td_choose_look();
	return chosen_for_what_is_open(TD_BACKEND_SWAP) && stays == 1;
}

static bool is_plain_where_open_files_are_not_listed(void)
{
	struct rlimit none = {0, 0};

	begin(TD_BACKEND_AUTO);
	if (setrlimit(RLIMIT_NOFILE, &none))
		return false;
	td_choose();
	return chosen(TD_BACKEND_PLAIN, TD_BACKEND_REGISTERS, "/proc/thread-self/fd");
}

static bool is_the_users_word_whatever_is_open(void)
{
	begin(TD_BACKEND_SWAP);
	td_choose();
	if (!open_device("/dev/gdrdrv"))
		return false;
	td_choose_look();
	return chosen(TD_BACKEND_SWAP, 0, "") && !stays;
}

static bool is_chosen_anew_in_a_child(void)
{
	begin(TD_BACKEND_AUTO);
	td_choose();
	if (!open_device("/dev/gdrdrv"))
		return false;
	td_choose_look();
	td_choose_before_fork();
	td_choose_forked();
	if (!chosen(TD_BACKEND_PLAIN, 0, ""))
		return false;
	td_choose();
	return chosen_for_what_is_open(TD_BACKEND_PLAIN) && stays == 1;
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

TEST(the_backend_is_swap_where_network_cards_reach_other_memory_alone)
{
	in_child(is_swap_where_network_cards_reach_other_memory_alone);
}

TEST(the_backend_is_plain_where_the_driver_does_not_answer)
{
	in_child(is_plain_where_the_driver_does_not_answer);
}

TEST(the_backend_is_plain_beside_a_device_that_registers)
{
	in_child(is_plain_beside_a_device_that_registers);
}

TEST(the_backend_is_swap_beside_other_devices)
{
	in_child(is_swap_beside_other_devices);
}

TEST(the_backend_is_swap_beside_a_library_that_could)
{
	in_child(is_swap_beside_a_library_that_could);
}

TEST(the_backend_stays_once_such_a_device_is_open)
{
	in_child(stays_once_such_a_device_is_open);
}

TEST(the_backend_is_plain_where_open_files_are_not_listed)
{
	in_child(is_plain_where_open_files_are_not_listed);
}

TEST(the_backend_is_the_users_word_whatever_is_open)
{
	in_child(is_the_users_word_whatever_is_open);
}

TEST(the_backend_is_chosen_anew_in_a_child)
{
	in_child(is_chosen_anew_in_a_child);
}
